import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { isPrivateAddress, publicLookup, type Resolve, requirePublicHost } from '../../src/model/addresses.ts';

const PRIVATE = [
  '0.0.0.0',
  '10.1.2.3',
  '100.64.0.1',
  '127.0.0.1',
  '127.255.0.9',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.168.1.1',
  '198.18.0.1',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  '::ffff:127.0.0.1',
  '::ffff:a9fe:a9fe',
  '::127.0.0.1',
  '64:ff9b::a00:1',
  '2002:7f00:1::',
  'fc00::1',
  'fd12:3456::1',
  'fe80::1',
  'ff02::1',
  'not an address',
];
const PUBLIC = ['1.1.1.1', '8.8.8.8', '172.32.0.1', '192.169.0.1', '2606:4700::1111', '::ffff:8.8.8.8'];

suite('addresses that a redirect may lead to', () => {
  test('are those of the public internet', () => {
    for (const address of PRIVATE) assert.equal(isPrivateAddress(address), true, address);
    for (const address of PUBLIC) assert.equal(isPrivateAddress(address), false, address);
  });

  test('are looked at in every spelling that a URL takes', () => {
    for (const host of [
      '127.0.0.1',
      '0x7f.1',
      '2130706433',
      '017700000001',
      '[::1]',
      '[::ffff:7f00:1]',
      '169.254.169.254',
    ]) {
      const { hostname } = new URL(`https://${host}/`);
      assert.throws(() => requirePublicHost(hostname), /which is not a public address/, host);
    }
    requirePublicHost(new URL('https://8.8.8.8/').hostname);
    requirePublicHost('models.example');
  });

  test('are those that a name has, all of them, when it is connected to', async () => {
    const resolved = (addresses: readonly string[], all: boolean) =>
      new Promise((done) => {
        const resolve: Resolve = (_host, _options, reply) =>
          reply(
            null,
            addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
          );
        publicLookup(resolve)('models.example', { all }, (error, address) => done(error?.message ?? address));
      });
    assert.equal(await resolved(['8.8.8.8'], false), '8.8.8.8');
    assert.deepEqual(await resolved(['8.8.8.8'], true), [{ address: '8.8.8.8', family: 4 }]);
    const refused = 'a redirect to models.example (10.0.0.1), which is not a public address, is not followed';
    assert.equal(await resolved(['10.0.0.1'], true), refused);
    assert.equal(await resolved(['8.8.8.8', '10.0.0.1'], true), refused);
    assert.match(String(await resolved([], true)), /no address/);
  });
});
