/** The folder of the build: this file is in a folder of it, both when it is compiled and when it is bundled. */
export const DIST = new URL('../', import.meta.url);
