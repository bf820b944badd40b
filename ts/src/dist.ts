/** The folder of what is built: this file is in a folder of it, as it was compiled and as it is bundled. */
export const DIST = new URL('../', import.meta.url);
