import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { missingEngine, missingModel, type Platform, unsupportedPlatform } from '../../src/engine/parts.ts';

const GLIBC = '2.28';

suite('a platform', () => {
  const UNSUPPORTED: readonly (readonly [Platform, string])[] = [
    [{ os: 'darwin', cpu: 'x64', glibc: undefined }, 'there is no engine for Macs with an Intel processor'],
    [{ os: 'freebsd', cpu: 'x64', glibc: undefined }, 'there is no engine for freebsd x64'],
    [{ os: 'win32', cpu: 'arm64', glibc: undefined }, 'there is no engine for win32 arm64'],
    [{ os: 'linux', cpu: 'ia32', glibc: GLIBC }, 'there is no engine for linux ia32'],
    [{ os: 'linux', cpu: 'x64', glibc: undefined }, 'there is no engine for musl, as on Alpine'],
    [{ os: 'linux', cpu: 'x64', glibc: '2.17' }, 'the engine needs glibc 2.28 or newer, and this system has 2.17'],
    [{ os: 'linux', cpu: 'arm64', glibc: '2.9' }, 'the engine needs glibc 2.28 or newer, and this system has 2.9'],
  ];

  for (const [platform, reason] of UNSUPPORTED) {
    test(`without an engine is told so, and of the container: ${reason}`, () => {
      const message = missingEngine(platform);
      assert.ok(message.startsWith(reason), message);
      assert.match(message, /the container image$/);
      assert.doesNotMatch(message, /\n/);
      assert.equal(unsupportedPlatform(platform), message);
    });
  }

  const SUPPORTED: readonly (readonly [Platform, string])[] = [
    [{ os: 'linux', cpu: 'x64', glibc: GLIBC }, '@svc/engine-linux-x64-gnu'],
    [{ os: 'linux', cpu: 'arm64', glibc: '2.41' }, '@svc/engine-linux-arm64-gnu'],
    [{ os: 'darwin', cpu: 'arm64', glibc: undefined }, '@svc/engine-darwin-arm64'],
    [{ os: 'win32', cpu: 'x64', glibc: undefined }, '@svc/engine-win32-x64-msvc'],
  ];

  for (const [platform, name] of SUPPORTED) {
    test(`with an engine is told of its package when that is not installed: ${name}`, () => {
      assert.equal(unsupportedPlatform(platform), undefined);
      const advice = 'is not installed: run npm install again, without --omit=optional';
      assert.equal(missingEngine(platform), `the package ${name} ${advice}`);
    });
  }
});

test('a program that has bundled the package is told to leave it out', () => {
  const linux: Platform = { os: 'linux', cpu: 'x64', glibc: GLIBC };
  const advice =
    / is not found from \S+, where @svc\/server is in a bundle: a bundler must leave @svc\/server out \("external"\), and the package must be installed beside the bundle$/;
  assert.match(missingModel(false), advice);
  assert.match(missingEngine(linux, false), advice);
  assert.match(missingModel(), /^the embedded model is not installed: there is no package @svc\/model-small /);
});
