import assert from 'node:assert/strict';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { suite, test } from 'node:test';
import { inspect } from 'node:util';
import { loadConfig } from '../../src/settings/config.ts';
import { hubSettings } from '../../src/settings/hub.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const places = { cwd: resolve('/place'), dataDir: undefined };
const cacheOf = (env: Readonly<Record<string, string>>, dataDir?: string) =>
  hubSettings(env, { ...places, dataDir }).cache;

suite('the settings of a hub', () => {
  test('are those of the public hub by default', () => {
    const settings = hubSettings({}, places);
    const cache = join(homedir(), '.cache', 'huggingface', 'hub');
    assert.deepEqual(settings, { endpoint: 'https://huggingface.co', token: undefined, isOffline: false, cache });
    assert.ok(Object.isFrozen(settings));
  });

  test('come from the variables of its other clients, and an empty one counts as unset', () => {
    const names = ['HF_ENDPOINT', 'HF_TOKEN', 'HF_HUB_OFFLINE', 'HF_HOME', 'HF_HUB_CACHE', 'HUGGINGFACE_HUB_CACHE'];
    const empty = Object.fromEntries([...names, 'XDG_CACHE_HOME'].map((name) => [name, '']));
    assert.deepEqual(hubSettings(empty, places), hubSettings({}, places));
    const env = { HF_ENDPOINT: ' https://hub.example/mirror/ ', HF_TOKEN: ' hf_x\r\n', HF_HUB_OFFLINE: '1' };
    const { endpoint, token, isOffline } = hubSettings(env, places);
    assert.deepEqual([endpoint, token?.reveal(), isOffline], ['https://hub.example/mirror', 'hf_x', true]);
  });

  for (const [value, isOffline] of [
    ['1', true],
    ['yes', true],
    ['True', true],
    ['ON', true],
    ['0', false],
    ['false', false],
    ['2', false],
  ] as const) {
    test(`HF_HUB_OFFLINE ${value} means ${isOffline ? 'yes' : 'no'}, as for its other clients`, () => {
      assert.equal(hubSettings({ HF_HUB_OFFLINE: value }, places).isOffline, isOffline);
    });
  }

  test('say where the cache is: the nearest variable wins, SVC_DATA before the folder of the user', () => {
    const env = {
      HF_HUB_CACHE: '/a',
      HUGGINGFACE_HUB_CACHE: '/b',
      HF_HOME: '/c',
      XDG_CACHE_HOME: '/d',
    };
    assert.equal(cacheOf(env), resolve('/a'));
    assert.equal(cacheOf({ ...env, HF_HUB_CACHE: '' }), resolve('/b'));
    const { HF_HUB_CACHE: _, HUGGINGFACE_HUB_CACHE: __, ...home } = env;
    assert.equal(cacheOf(home, '/data'), resolve('/c/hub'));
    assert.equal(cacheOf({ XDG_CACHE_HOME: '/d' }, '/data'), join('/data', 'huggingface', 'hub'));
    assert.equal(cacheOf({ XDG_CACHE_HOME: '/d' }), resolve('/d/huggingface/hub'));
    assert.equal(cacheOf({ HF_HOME: 'here' }), resolve('/place/here/hub'));
  });

  test('may name the home folder and other variables in a path', () => {
    assert.equal(cacheOf({ HF_HOME: '~/hf' }), join(homedir(), 'hf', 'hub'));
    assert.equal(cacheOf({ HF_HOME: '~' }), join(homedir(), 'hub'));
    assert.equal(
      cacheOf({ HF_HUB_CACHE: ['$DISK/x/$', '{NAME}'].join(''), DISK: '/mnt', NAME: 'n' }),
      resolve('/mnt/x/n'),
    );
    assert.equal(cacheOf({ HF_HUB_CACHE: '/x/$NONE' }), resolve('/x/$NONE'));
  });

  test('are those of the process, and never show the token', (t) => {
    const { config } = loadConfig({
      cwd: temporaryFolder(t),
      env: { HF_TOKEN: 'hf_hidden', SVC_MODEL: 'hf:org/name' },
    });
    assert.equal(config.hub.token?.reveal(), 'hf_hidden');
    assert.equal(config.model, 'hf:org/name');
    for (const text of [JSON.stringify(config), inspect(config, { depth: 9 }), String(config.hub.token)]) {
      assert.doesNotMatch(text, /hidden/);
    }
  });
});
