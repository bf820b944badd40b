/** Writes SHA256SUMS over all archives in dist/release/archives/, and fails if a platform's archive is missing. */
import { archiveName, writeSums } from './archive.mjs';
import { asProgram } from './command.mjs';
import { PLATFORMS } from './platforms.mjs';

await asProgram(import.meta.url, () => {
  const names = writeSums();
  const missing = PLATFORMS.map(archiveName).filter((name) => !names.includes(name));
  if (missing.length > 0) throw new Error(`there is no ${missing.join(', ')}`);
});
