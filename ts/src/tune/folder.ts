/** The written model folder: a copy that replaces another folder only when it is complete. */
import {
  chmodSync,
  constants,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { applyEdits, type JSONPath, modify } from 'jsonc-parser';
import { errorCode } from '../files/system-error.ts';
import { Refusal } from '../refusal.ts';
import type { Calibration } from './fit.ts';
import type { AskedQuestion, Kind, Reading } from './labels.ts';
import { linesWithout } from './reference-lines.ts';

const CONFIG = 'config.json';
const REFERENCES = 'golden.jsonl';

/**
 * The files that are about the model as it was published: its npm package, its card and the pictures in it, whose
 * numbers are not those of another calibration.
 */
const OF_PUBLICATION = /^(package\.json|readme(\..*)?|.*\.(svg|png|jpe?g))$/i;
const KINDS: readonly Kind[] = ['choice', 'score', 'noul'];

/** The temperature of a type's questions with `min` to `max` options; without `max` there is no limit. */
interface OptionTemperature {
  readonly type: Kind;
  readonly min: number;
  readonly max?: number | null;
  readonly temperature: number;
}

/** The parts of `config.json` about temperatures and biases. */
interface ModelConfig {
  readonly layout?: string;
  readonly temperature?: Partial<Readonly<Record<Kind, number>>>;
  readonly temperature_by_options?: readonly OptionTemperature[];
  readonly noul_bias?: { readonly named?: number; readonly question?: number; readonly statement?: number };
  readonly calibration?: Readonly<Record<string, Calibration>>;
  /** Whether the layout `shared-state` reads questions that ask the same alike. */
  readonly unify?: boolean;
}

/** Returns the form of a noul's instructions, as the engine tells them apart. */
function formOf(instructions: string): 'named' | 'question' | 'statement' {
  if (instructions.includes('`')) return 'named';
  return instructions.includes('?') ? 'question' : 'statement';
}

export interface Destination {
  /** The model folder that is copied. */
  readonly model: string;
  readonly out: string;
  /** The file of the labelled rows, which must not lie in the replaced folder. */
  readonly data: string;
  readonly overwrite: boolean;
}

/**
 * Checks that `out` may be written.
 *
 * @throws Refusal when `out` exists and may not be replaced, or lies in the model folder or around it.
 */
export function requireFreeFolder({ model, out, data, overwrite }: Destination): void {
  const [from, to, rows] = [model, out, data].map(realPath) as [string, string, string];
  if (isWithin(to, from) || isWithin(from, to)) throw new Refusal(`--out: must be another folder than ${model}`);
  if (!existsSync(to)) return;
  if (!statSync(to).isDirectory()) throw new Refusal(`${out}: is a file`);
  if (readdirSync(to).length === 0) return;
  if (!overwrite) throw new Refusal(`${out}: is there already; --overwrite replaces it`);
  if (!existsSync(join(to, CONFIG)))
    throw new Refusal(`${out}: is no model folder, so --overwrite does not replace it`);
  if (isWithin(rows, to)) throw new Refusal(`${data}: lies in ${out}, which would be replaced`);
}

function isWithin(path: string, folder: string): boolean {
  const way = relative(folder, path);
  return way === '' || !(way.startsWith('..') || resolve(way) === way);
}

/** Returns the path with its links resolved, as far as it exists. */
function realPath(path: string): string {
  const whole = resolve(path);
  if (existsSync(whole)) return realpathSync(whole);
  const parent = dirname(whole);
  return parent === whole ? whole : join(realPath(parent), relative(parent, whole));
}

/** A copy of a model folder, next to the place that it is for. */
export class FolderCopy {
  /** The path of the copy. */
  readonly path: string;
  readonly #temporary: string;
  readonly #out: string;
  readonly #text: string;
  readonly #config: ModelConfig;

  /**
   * Copies the model folder.
   *
   * @throws Refusal when the model cannot be read, or no folder can be written.
   */
  constructor({ model, out }: Pick<Destination, 'model' | 'out'>) {
    this.#out = resolve(out);
    try {
      this.#text = readFileSync(join(model, CONFIG), 'utf8');
      mkdirSync(dirname(this.#out), { recursive: true });
      this.#temporary = mkdtempSync(join(dirname(this.#out), '.svc-tune-'));
    } catch (error) {
      throw notCopied(out, error);
    }
    this.#config = JSON.parse(this.#text) as ModelConfig;
    this.path = join(this.#temporary, 'model');
    try {
      // These copies share their bytes until one of them is changed, if the file system supports that; with links, a
      // change would affect both.
      const filter = (file: string) => !OF_PUBLICATION.test(relative(model, file));
      cpSync(model, this.path, { recursive: true, dereference: true, mode: constants.COPYFILE_FICLONE, filter });
      chmodSync(this.path, statSync(model).mode | 0o700);
    } catch (error) {
      this.remove();
      throw notCopied(out, error);
    }
  }

  /** Returns the calibration of a question in the copied model: its own, or that of its type, length and form. */
  calibrationOf(question: AskedQuestion): Calibration {
    const { key, instructions } = question;
    const { calibration, temperature, temperature_by_options: byOptions = [], noul_bias: biases = {} } = this.#config;
    const own = calibration?.[key];
    if (own) return { temperature: own.temperature, bias: own.bias ?? [] };
    const { kind, places } = this.#readingOf(question);
    const count = new Set(places).size;
    const fits = ({ type, min, max }: OptionTemperature) =>
      type === kind && min <= count && count <= (max ?? Number.POSITIVE_INFINITY);
    const bias = kind === 'noul' ? (biases[formOf(instructions)] ?? 0) : 0;
    return {
      temperature: byOptions.find(fits)?.temperature ?? temperature?.[kind] ?? 1,
      bias: bias === 0 ? [] : places.map((place) => place * bias),
    };
  }

  /** Whether the model reads several options of a question as one. */
  readsAsOne(question: AskedQuestion): boolean {
    const { places } = this.#readingOf(question);
    return new Set(places).size < places.length;
  }

  #readingOf({ kind, options, unified }: AskedQuestion): Reading {
    const { layout, unify } = this.#config;
    return layout === 'shared-state' && unify ? unified : { kind, places: [...options.keys()] };
  }

  /** Gives all questions of the copy the same temperature and nothing else. */
  writeTemperature(temperature: number): void {
    const everywhere = Object.fromEntries(KINDS.map((kind) => [kind, temperature]));
    let text = changed(this.#text, ['temperature'], everywhere);
    for (const name of ['temperature_by_options', 'noul_bias', 'calibration']) text = changed(text, [name], undefined);
    this.#write(CONFIG, text);
  }

  /**
   * Gives the copy the model's own configuration, with these calibrations added to or replacing those in it. Reference
   * answers to these questions are left out, since the calibrated model gives others.
   */
  writeCalibrations(calibrations: ReadonlyMap<string, Calibration>): void {
    let text = this.#text;
    for (const [key, calibration] of calibrations) text = changed(text, ['calibration', key], calibration);
    this.#write(CONFIG, text);
    const file = join(this.path, REFERENCES);
    if (existsSync(file))
      this.#write(REFERENCES, linesWithout(readFileSync(file, 'utf8'), new Set(calibrations.keys())));
  }

  /** Moves the copy to its place; the folder that was there is gone. */
  publish(): void {
    const before = join(this.#temporary, 'before');
    try {
      if (existsSync(this.#out)) renameSync(this.#out, before);
      renameSync(this.path, this.#out);
    } catch (error) {
      if (existsSync(before) && !existsSync(this.#out)) renameSync(before, this.#out);
      throw notCopied(this.#out, error);
    }
  }

  /** Removes the temporary folder, with everything that was not moved to its place. */
  remove(): void {
    rmSync(this.#temporary, { recursive: true, force: true });
  }

  #write(name: string, text: string): void {
    const file = join(this.path, name);
    // The copied file may be read-only.
    rmSync(file, { force: true });
    writeFileSync(file, text);
  }
}

/** Returns the JSON text with one value changed, or removed if `value` is undefined, and nothing else. */
function changed(text: string, path: JSONPath, value: unknown): string {
  return applyEdits(text, modify(text, path, value, { formattingOptions: { insertSpaces: true, tabSize: 2 } }));
}

function notCopied(out: string, error: unknown): unknown {
  return errorCode(error) === '' ? error : new Refusal(`${out}: cannot be written (${errorCode(error)})`);
}
