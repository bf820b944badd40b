import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { temporaryFolder } from '../temporary-folder.ts';

if (process.platform !== 'win32') {
  test('what starts svc finds its Node through links, also through relative ones in a folder that is a link itself', async (t) => {
    const folder = realpathSync(temporaryFolder(t));
    const unpacked = join(folder, 'disk', 'my svc');
    for (const name of ['bin', 'lib']) mkdirSync(join(unpacked, name), { recursive: true });
    copyFileSync(join(REPOSITORY, 'scripts', 'release', 'launcher', 'svc'), join(unpacked, 'bin', 'svc'));
    // This script in the place of Node prints the program that it was given and the other arguments.
    writeFileSync(join(unpacked, 'lib', 'node'), '#!/bin/sh\nprintf "%s|" "$@"\n');
    for (const file of [join('bin', 'svc'), join('lib', 'node')]) chmodSync(join(unpacked, file), 0o755);
    mkdirSync(join(folder, 'disk', 'bin'));
    mkdirSync(join(folder, 'home'));
    symlinkSync(join('..', 'disk', 'bin'), join(folder, 'home', 'bin'));
    symlinkSync(join('..', 'my svc', 'bin', 'svc'), join(folder, 'home', 'bin', 'svc'));
    symlinkSync(join(folder, 'home', 'bin', 'svc'), join(folder, 'svc'));
    const program = join(unpacked, 'lib', 'node_modules', '@svc', 'server', 'bin', 'svc.js');
    for (const path of [join(unpacked, 'bin', 'svc'), join(folder, 'home', 'bin', 'svc'), join(folder, 'svc')]) {
      const { code, stdout, stderr } = await runCommand(path, { args: ['ask', 'a b'] });
      assert.deepEqual([code, stdout, stderr], [0, `${program}|ask|a b|`, ''], path);
    }
  });
}
