/**
 * Finds comments that begin with a word which hides their subject, such as "What is left to read" for "The number of bytes
 * left to read", and prints where they stand. It ends with 1 when there is one.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

process.chdir(fileURLToPath(new URL('..', import.meta.url)));

const COMMENT = /^\s*(?:\/\/[/!]?|\/?\*\*?|#|""")\s*(?:What|Who|Whoever|Whatever|Nobody)\b/;
const SOURCE = /\.(?:rs|[cm]?[jt]s|py|sh|css|ya?ml|toml)$|(?:^|\/)(?:Dockerfile|run)$/;

const { stdout } = spawnSync('git', ['ls-files', '-z'], { encoding: 'utf8', maxBuffer: 2 ** 26 });
const found = stdout
  .split('\0')
  .filter((file) => SOURCE.test(file))
  .flatMap((file) => {
    const lines = readFileSync(file, 'utf8').split('\n');
    return lines.flatMap((line, at) => (COMMENT.test(line) ? [`${file}:${at + 1}: ${line.trim()}`] : []));
  });
for (const line of found) process.stdout.write(`${line}\n`);
if (found.length > 0) process.stdout.write(`${found.length} comments hide their subject\n`);
process.exitCode = found.length > 0 ? 1 : 0;
