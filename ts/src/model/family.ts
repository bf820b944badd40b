/** The families of models, each known by one file of its folder. */
import { lstat, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { namedGraphs } from './two-graphs.ts';

/** A family, and the file that a folder was known by. */
export interface Family {
  readonly name: string;
  readonly file: string;
}

/** The files that a model is made of, besides its graph. */
export interface Needs {
  /** The file of the tokenizer. */
  readonly tokenizer: string;
  /** The files of settings that the folder may have besides the one that it was known by. */
  readonly settings: readonly string[];
  /** The graph, where the folder names it; of two graphs, the encoder. */
  readonly graph?: string | undefined;
}

/** A family, and the files that a model of it needs. */
export interface KnownFamily extends Family {
  readonly needs: Needs;
}

type Content = Readonly<Record<string, unknown>>;

/** The form in which models of a family are published. */
interface Form extends Family {
  /** Whether the content of the file, a JSON object, is that of the family. */
  readonly isIt: (content: Content) => boolean;
  /** The tokens that the model's tokenizer must have, where the content of the file says too little. */
  readonly tokens?: readonly string[];
  /** Returns the files that such a model needs, where they are other than those of most models. */
  readonly needs?: (content: Content) => Partial<Needs>;
}

/** The longest file that a family is known by, in bytes. */
export const MAX_FAMILY_FILE_BYTES = 16 * 2 ** 20;

const GLINER_TOKENS = ['[P]', '[L]', '[DESCRIPTION]', '[SEP_STRUCT]', '[SEP_TEXT]'];

/**
 * All forms. Of several that fit, the first counts: a `config.json` that was written for this engine, then the forms of
 * the makers of models, and at last the models that the usual tools have exported.
 */
const FORMS: readonly Form[] = [
  { name: 'shared-state', file: 'config.json', isIt: ({ layout }) => layout === 'shared-state' },
  { name: 'pair', file: 'config.json', isIt: ({ layout }) => layout === 'pair' },
  {
    name: 'marker',
    file: 'config.json',
    isIt: ({ layout, special_ids: specialIds }) =>
      layout === 'marker' || (layout === undefined && specialIds !== undefined),
    needs: namedEncoder,
  },
  ownWithTwoGraphs('bi-encoder'),
  ownWithTwoGraphs('late-interaction'),
  { name: 'noulxp', file: 'noulxp.json', isIt: () => true, needs: noulxpNeeds },
  { name: 'noulxp', file: 'odxp.json', isIt: () => true, needs: noulxpNeeds },
  { name: 'laya', file: 'rl_agent_config.json', isIt: () => true },
  { name: 'laya', file: 'config.json', isIt: ({ layout, laya }) => layout === undefined && isObject(laya) },
  { name: 'open-jev', file: 'config.json', isIt: ({ layout, open_jev: it }) => layout === undefined && isObject(it) },
  { name: 'gliner-decide', file: 'config.json', isIt: ({ layout }) => layout === undefined, tokens: GLINER_TOKENS },
  {
    name: 'jevhome',
    file: 'decision_config.json',
    isIt: ({ head }) => head === 'h2' || head === 'emb',
    needs: ({ head }) => ({
      settings: ['calibration_u.json', 'tokenizer_config.json'],
      graph: head === 'emb' ? 'encoder.onnx' : undefined,
    }),
  },
  {
    name: 'opendecider',
    file: 'opendecider.json',
    isIt: () => true,
    needs: () => ({ tokenizer: 'tokenizer.web.json', settings: [] }),
  },
  { name: 'julia', file: 'julia_config.json', isIt: ({ architecture }) => architecture === 'JuliaDecisionModel' },
  {
    name: 'julia',
    file: 'config.json',
    isIt: ({ layout, architectures }) =>
      layout === undefined && JSON.stringify(architectures) === '["JuliaDecisionModel"]',
  },
  decimaIn(''),
  decimaIn('onnx/fp32/'),
  decimaIn('onnx/int8/'),
  {
    name: 'pair',
    file: 'config.json',
    isIt: ({ layout, ...config }) =>
      layout === undefined && ['architectures', 'model_type', 'id2label'].some((key) => config[key] !== undefined),
  },
];

/** Returns the form of a `config.json` for a layout of two graphs. */
function ownWithTwoGraphs(name: string): Form {
  return { name, file: 'config.json', isIt: ({ layout }) => layout === name, needs: namedEncoder };
}

function namedEncoder(config: Content): Partial<Needs> {
  return { graph: namedGraphs(config)[0] };
}

/** Returns the form of Decima's export in a folder of the model: a repository has one for each precision. */
function decimaIn(folder: string): Form {
  return {
    name: 'decima',
    file: `${folder}decima.json`,
    isIt: () => true,
    needs: () => ({ tokenizer: `${folder}tokenizer/tokenizer.json`, graph: `${folder}encoder.onnx` }),
  };
}

/** The files of settings by which a family can be known. */
export const FAMILY_FILES: readonly string[] = [...new Set(FORMS.map(({ file }) => file))];

/** The file by which a folder without a `config.json` is known. */
const BARE_FILE = 'tokenizer.json';

/** The families whose folders need no settings: they are known by the tokens of their tokenizers. */
const BARE: readonly (readonly [name: string, tokens: readonly string[]])[] = [
  ['gliner-decide', GLINER_TOKENS],
  ['julia', ['<bos>', '<eos>', '<mask>']],
];

/** The longest tokenizer that is read to know a family, in bytes: those of mmBERT have half as many. */
const MAX_TOKENIZER_BYTES = 64 * 2 ** 20;

/** Whether one of these names of files can show what a folder is. */
export function canBeKnown(names: readonly string[]): boolean {
  return names.some((name) => name === BARE_FILE || FAMILY_FILES.includes(name));
}

/** Returns which of these files show what a folder is: the settings, or the tokenizer where there are none. */
export function knownBy(names: readonly string[]): string[] {
  const settings = names.filter((name) => FAMILY_FILES.includes(name));
  return settings.length > 0 ? settings : names.filter((name) => name === BARE_FILE);
}

/** The end of a message about a folder that has none of the files by which a family can be known. */
export const NO_FAMILY_FILE = `none of the files that a model is known by (${[...FAMILY_FILES, BARE_FILE].join(', ')})`;

/** Returns the family of the model in a folder; undefined when it is of none. */
export async function familyOf(folder: string): Promise<Family | undefined> {
  const { name, file } = (await knownFamily(folder)) ?? {};
  return name === undefined || file === undefined ? undefined : { name, file };
}

/** The families whose settings are in a `config.json` that may be changed. */
const WITH_CONFIG: readonly string[] = ['marker', 'shared-state', 'pair'];

/** Whether a family has a form of its maker, whose files nobody else writes. */
export function isMakersForm(family: Family | undefined): family is Family {
  return family !== undefined && !WITH_CONFIG.includes(family.name);
}

/** Whether a tokenizer, which is read once at most, has all of some added tokens. */
type HasTokens = (tokens: readonly string[]) => Promise<boolean>;

/** Returns the family of the model in a folder, with the files that it needs; undefined when it is of none. */
export async function knownFamily(folder: string): Promise<KnownFamily | undefined> {
  const contents = new Map<string, Content | undefined>();
  let added: Promise<ReadonlySet<unknown>> | undefined;
  const hasTokens: HasTokens = async (tokens) => {
    added ??= addedTokens(folder);
    const texts = await added;
    return tokens.every((token) => texts.has(token));
  };
  for (const { name, file, isIt, tokens, needs } of FORMS) {
    if (!contents.has(file)) contents.set(file, await objectIn(join(folder, file)));
    const content = contents.get(file);
    if (content === undefined || !isIt(content)) continue;
    if (tokens !== undefined && !(await hasTokens(tokens))) continue;
    return { name, file, needs: { tokenizer: 'tokenizer.json', settings: [], ...needs?.(content) } };
  }
  const name = await bareFamily(folder, hasTokens);
  return name === undefined ? undefined : { name, file: BARE_FILE, needs: { tokenizer: BARE_FILE, settings: [] } };
}

/** Returns the family of a folder that has a tokenizer and no `config.json`. */
async function bareFamily(folder: string, hasTokens: HasTokens): Promise<string | undefined> {
  // A link that leads nowhere counts: without its file the folder could be another model.
  if ((await lstat(join(folder, 'config.json')).catch(() => undefined)) !== undefined) return undefined;
  for (const [name, tokens] of BARE) if (await hasTokens(tokens)) return name;
  return undefined;
}

/** Returns the added tokens of a folder's tokenizer. */
async function addedTokens(folder: string): Promise<ReadonlySet<unknown>> {
  const { added_tokens: added } = (await objectIn(join(folder, BARE_FILE), MAX_TOKENIZER_BYTES)) ?? {};
  return new Set(Array.isArray(added) ? added.map((token: { content?: unknown } | null) => token?.content) : []);
}

/** Returns the JSON object in a file; undefined when there is none, or the file is too long. */
export async function objectIn(path: string, maxBytes = MAX_FAMILY_FILE_BYTES): Promise<Content | undefined> {
  try {
    const status = await stat(path);
    // A named pipe or a device may have no end.
    if (!status.isFile() || status.size > maxBytes) return undefined;
    const value: unknown = JSON.parse(await readFile(path, 'utf8'));
    return isObject(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the files that a NoulXP package names. */
function noulxpNeeds(manifest: Content): Partial<Needs> {
  const pathOf = (entry: unknown): string[] =>
    isObject(entry) && 'path' in entry && typeof entry.path === 'string' ? [entry.path] : [];
  const { weights, tokenizer, template, calibration, conformance } = manifest;
  const data: unknown = isObject(weights) && 'data' in weights ? weights.data : [];
  const settings = [template, calibration, conformance, ...(Array.isArray(data) ? data : [])].flatMap(pathOf);
  const [[graph], [path = 'tokenizer.json']] = [pathOf(weights), pathOf(tokenizer)];
  return { tokenizer: path, settings, graph };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
