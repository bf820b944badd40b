/**
 * Makes the types of the addon for TypeScript, `ts/src/engine/native.ts`, from the definitions that the macros of
 * napi-derive write when the addon is compiled. The build fails when the file differs from them.
 *
 *     node scripts/addon-types.mjs  writes the file
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** The path of the file, from the root of the repository. */
export const ADDON_TYPES = join('ts', 'src', 'engine', 'native.ts');

const HEADER = `/** The types of the addon, \`crates/engine/src/node/\`; \`scripts/addon-types.mjs\` makes this file. */
`;

/** Returns the definitions in the addon, which is compiled if that is necessary. */
function definitions() {
  const args = ['build', '--release', '--locked', '-p', 'svc-engine', '--message-format=json-render-diagnostics'];
  const options = { cwd: ROOT, encoding: 'utf8', maxBuffer: 2 ** 28, stdio: ['ignore', 'pipe', 'inherit'] };
  const { status, error, stdout } = spawnSync('cargo', args, options);
  if (status !== 0) throw new Error(`cargo failed: ${error?.message ?? `exit code ${status}`}`);
  const messages = stdout.trimEnd().split('\n').map(JSON.parse);
  const isOurs = ({ reason, package_id: id }) => reason === 'build-script-executed' && id.includes('#svc-engine@');
  const lines = readFileSync(join(messages.find(isOurs).out_dir, 'svc-engine'), 'utf8')
    .trimEnd()
    .split('\n');
  // Two compilers at once, of the library and of its tests, write every line twice.
  return [...new Set(lines)].map(JSON.parse);
}

/** Returns a line of a definition, indented: a member, or a part of a comment. */
function member(line, write) {
  const text = line.trim();
  if (text.startsWith('/**')) return `  ${text}`;
  return text.startsWith('*') ? `   ${text}` : `  ${write(text)};`;
}

function members(definition, write) {
  return definition.split('\n').map((line) => member(line, write));
}

/** Returns a property that is read only, since an object that has crossed the boundary is a copy. */
function property(text) {
  const [, name, optional, type] = /^(\w+)(\??): (.+)$/.exec(text);
  const elements = /^Array<(\w+)>$/.exec(type);
  const readOnly = elements ? `readonly ${elements[1]}[]` : type;
  return `readonly ${name}${optional}: ${readOnly}${optional && ' | undefined'}`;
}

/** Returns the values of an enum, with their quotes. */
function valuesIn(definition) {
  return [...definition.matchAll(/ = ('[^']*')/g)].map(([, value]) => value);
}

function signature(text) {
  return text.replaceAll(/Array<(\w+)>/g, '$1[]');
}

const WRITERS = {
  interface: ({ name, def }) => [`export interface ${name} {`, ...members(def, property), '}'],
  string_enum: ({ name, def }) => [`export type ${name} = ${valuesIn(def).join(' | ')};`],
  fn: ({ def }) => [`export declare ${signature(def)};`],
  struct: ({ name, impl }) => [`export declare class ${name} {`, ...members(impl.def, signature), '}'],
};

/** Returns the types of the addon. */
export function addonTypes() {
  const all = definitions();
  const named = all.filter(({ kind }) => kind !== 'impl').sort((a, b) => (a.name < b.name ? -1 : 1));
  const texts = named.map((definition) => {
    const impl = all.find(({ kind, name }) => kind === 'impl' && name === definition.name);
    return `${definition.js_doc}${WRITERS[definition.kind]({ ...definition, impl }).join('\n')}\n`;
  });
  return [HEADER, ...texts].join('\n');
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) writeFileSync(join(ROOT, ADDON_TYPES), addonTypes());
