/** How a script of a release is run: from the repository's folder, with one line for what goes wrong. */
import process from 'node:process';
import { fileURLToPath } from 'node:url';

/** Runs `work` with the arguments when the module at `url` is the program, and does nothing when it is imported. */
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
