/** When imported before a program, kills it in place of its change of files number `KILL_AT`, counted from 0. */
import fs from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';

const CHANGES = [
  'copyFile',
  'link',
  'mkdir',
  'open',
  'rename',
  'rm',
  'rmdir',
  'symlink',
  'unlink',
  'write',
  'writeFile',
];

const { KILL_AT = '' } = process.env;
let left = Number(KILL_AT);

/** Whether a call only opens a file for reading. */
function isReading(name: string, [, flags]: readonly unknown[]): boolean {
  return name.startsWith('open') && (flags === undefined || flags === 'r');
}

for (const module of [fs, promises] as unknown as Record<string, unknown>[]) {
  for (const name of [...CHANGES, 'writev', ...CHANGES.map((change) => `${change}Sync`)]) {
    const change = module[name];
    if (typeof change !== 'function') continue;
    const orEnd = (...args: unknown[]): unknown => {
      if (!isReading(name, args)) left -= 1;
      if (left < 0) process.kill(process.pid, 'SIGKILL');
      return Reflect.apply(change, module, args);
    };
    module[name] = Object.assign(orEnd, change);
  }
}
syncBuiltinESMExports();
