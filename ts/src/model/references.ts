/** The reference answers that may come with a model folder. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Engine, Reply } from '../engine/contract.ts';
import { memberText } from '../files/json-member.ts';
import { sha256Of } from '../files/sha256.ts';
import { errorCode } from '../files/system-error.ts';
import { Refusal } from '../refusal.ts';
import { familyOf, objectIn } from './family.ts';

const FILE = 'golden.jsonl';
/** The same in a NoulXP package, which may give it another name. */
const CONFORMANCE_FILE = 'conformance.jsonl';
/** The most reference answers that are tried: more say nothing new, and each costs a run on the model. */
const MAX_REFERENCES = 32;
const MAX_FILE_BYTES = 16 * 2 ** 20;
/**
 * The largest distance of a probability from its reference: as far as another processor, an accelerator or states of 16
 * bits move it. Another tokenizer or graph moves it further.
 */
const TOLERANCE = 0.1;
/** The error codes of requests over the limits of this server; a reference may be such a request. */
const OVER_LIMITS: ReadonlySet<string> = new Set(['too_many_questions', 'too_many_tokens', 'text_too_long']);

interface Reference {
  readonly file: string;
  readonly line: number;
  /** The request as it stands in the file. */
  readonly body: string;
  /** The probabilities by question and label; undefined where the model refuses the request. */
  readonly probabilities: Probabilities | undefined;
  readonly inputTokens: number | undefined;
}

type Probabilities = Readonly<Record<string, Readonly<Record<string, number>>>>;

interface Answer {
  readonly answers: Readonly<Record<string, { readonly probabilities?: Readonly<Record<string, number>> } | undefined>>;
  readonly usage: { readonly input_tokens: number };
}

/**
 * Asks an engine for the reference answers of its model folder, and returns how many there were. The asking ends when
 * `signal` fires. A model whose products cannot be exact on this processor is served with a warning, so its
 * probabilities may differ from the references, which another processor gave.
 *
 * @throws Refusal when an answer differs from its reference.
 */
export async function tryReferences(engine: Engine, folder: string, signal: AbortSignal): Promise<number> {
  const references = await readReferences(folder);
  const tolerance = engine.info().exactness === 'cannot be' ? Number.POSITIVE_INFINITY : TOLERANCE;
  for (const reference of references) {
    const reply = await engine.decide(Buffer.from(reference.body), { signal });
    signal.throwIfAborted();
    compare(reply, reference, tolerance);
  }
  return references.length;
}

/** Compares an answer with its reference; a probability may be as far from it as `tolerance`. */
function compare(reply: Reply, { file, line, inputTokens, probabilities }: Reference, tolerance: number): void {
  const where = `${file}: line ${line}`;
  if (reply.failure !== undefined) {
    if (probabilities === undefined || OVER_LIMITS.has(reply.failure.code)) return;
    throw new Refusal(`${where}: ${reply.failure.message}`);
  }
  if (probabilities === undefined) throw new Refusal(`${where}: has an answer, the reference has none`);
  const { answers, usage } = JSON.parse(reply.body.toString('utf8')) as Answer;
  if (inputTokens !== undefined && usage.input_tokens !== inputTokens) {
    throw new Refusal(`${where}: ${usage.input_tokens} tokens, the reference has ${inputTokens}`);
  }
  for (const [id, expected] of Object.entries(probabilities)) {
    const got = answers[id]?.probabilities ?? {};
    for (const [label, value] of Object.entries(expected)) {
      const isNear = Math.abs((got[label] ?? Number.NaN) - value) <= tolerance;
      if (!isNear) throw new Refusal(`${where}: ${id}: ${label} is ${got[label]}, the reference is ${value}`);
    }
  }
}

/** Whether a model folder has a file of reference answers. */
export async function hasReferences(folder: string): Promise<boolean> {
  const files = (await referenceFiles(folder)).map(({ path }) => stat(path).catch(() => undefined));
  return (await Promise.all(files)).some((status) => status !== undefined);
}

/** A file of reference answers. */
interface ReferenceFile {
  readonly path: string;
  /** The hex digest that its package names. */
  readonly sha256?: string | undefined;
}

/** Returns the files that may have the reference answers of a folder. */
async function referenceFiles(folder: string): Promise<ReferenceFile[]> {
  const { name, file = '' } = (await familyOf(folder)) ?? {};
  const own = { path: join(folder, FILE) };
  if (name !== 'noulxp') return [own];
  const { conformance } = (await objectIn(join(folder, file))) ?? {};
  const { path: named, sha256 }: { path?: unknown; sha256?: unknown } = Object(conformance);
  const isInside = typeof named === 'string' && !named.startsWith('/') && !/\\|:|(^|\/)\.\.(\/|$)/.test(named);
  if (!isInside) return [own, { path: join(folder, CONFORMANCE_FILE) }];
  return [own, { path: join(folder, named), sha256: typeof sha256 === 'string' ? sha256 : undefined }];
}

/** Returns the reference answers of a folder, those of its first file that there is. */
async function readReferences(folder: string): Promise<Reference[]> {
  for (const file of await referenceFiles(folder)) {
    const references = await readFrom(file);
    if (references.length > 0) return references;
  }
  return [];
}

async function readFrom({ path: file, sha256 }: ReferenceFile): Promise<Reference[]> {
  try {
    const status = await stat(file);
    // A named pipe or a device may have no end.
    if (!status.isFile()) throw new Refusal(`${file}: not a file`);
    if (status.size > MAX_FILE_BYTES) throw new Refusal(`${file}: larger than ${MAX_FILE_BYTES} bytes`);
    const text = await readFile(file, 'utf8');
    if (sha256 !== undefined && sha256Of(text) !== sha256.toLowerCase())
      throw new Refusal(`${file}: has another sha256 than its package says`);
    const lines = text.split('\n').filter((line) => line.trim() !== '');
    return lines.slice(0, MAX_REFERENCES).map((text, index) => parseReference(text, index + 1, file));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}

function parseReference(text: string, line: number, file: string): Reference {
  try {
    const { body, input_tokens: inputTokens, error, expected, ...others } = JSON.parse(text);
    const probabilities = expected === undefined ? others.probabilities : probabilitiesIn(expected);
    const isRefused = typeof error === 'object' && error !== null;
    if (!isRefused && (typeof probabilities !== 'object' || probabilities === null))
      throw new Error('no probabilities');
    const request = typeof body === 'string' ? body : rawRequest(text);
    return { file, line, body: request, probabilities: isRefused ? undefined : probabilities, inputTokens };
  } catch (error) {
    throw new Refusal(`${file}: line ${line}: is no reference answer`, { cause: error });
  }
}

/** Returns the probabilities of a line of a conformance file. */
function probabilitiesIn(expected: Readonly<Record<string, { readonly probabilities: Probabilities[string] }>>) {
  return Object.fromEntries(Object.entries(expected).map(([id, { probabilities }]) => [id, probabilities]));
}

function rawRequest(line: string): string {
  const text = memberText(line, 'request');
  if (text === undefined) throw new Error('no request');
  return text;
}
