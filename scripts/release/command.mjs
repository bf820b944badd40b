/** Runs a script of a release from the repository's folder, and prints one line if it fails. */
import process from 'node:process';
import { fileURLToPath } from 'node:url';

/** Runs `work` with the arguments if the module at `url` is the program, and does nothing if it is imported. */
export async function asProgram(url, work) {
  if (process.argv[1] !== fileURLToPath(url)) return;
  process.chdir(fileURLToPath(new URL('../..', import.meta.url)));
  try {
    await work(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`release: ${error.message}\n`);
    process.exitCode = 1;
  }
}
