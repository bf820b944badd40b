/** The model folder that is written: a copy that becomes another's place only when it is whole. */
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
import { errorCode } from '../exclusive-file.ts';
import { Refusal } from '../refusal.ts';
import type { Calibration } from './fit.ts';
import type { Kind } from './labels.ts';

const CONFIG = 'config.json';
const KINDS: readonly Kind[] = ['choice', 'score', 'noul'];

/** What `config.json` says of temperatures. */
interface ModelConfig {
  readonly temperature?: Partial<Readonly<Record<Kind, number>>>;
  readonly calibration?: Readonly<Record<string, Calibration>>;
}

export interface Destination {
  /** The model folder that is copied. */
  readonly model: string;
  readonly out: string;
  /** The labelled rows, which must not lie in what is replaced. */
  readonly data: string;
  readonly overwrite: boolean;
}

/**
 * Nothing, where `out` may be written.
 *
 * @throws Refusal when it is there already, or lies in the model folder.
 */
export function requireFree({ model, out, data, overwrite }: Destination): void {
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

/** The path with its links followed, as far as it is there. */
function realPath(path: string): string {
  const whole = resolve(path);
  if (existsSync(whole)) return realpathSync(whole);
  const parent = dirname(whole);
  return parent === whole ? whole : join(realPath(parent), relative(parent, whole));
}

/** A copy of a model folder, beside the place that it is for. */
export class FolderCopy {
  /** The copy. */
  readonly path: string;
  readonly #temporary: string;
  readonly #out: string;
  readonly #text: string;
  readonly #config: ModelConfig;

  /** @throws Refusal when the model cannot be read, or no folder written. */
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
      // Copies that share their bytes until one is changed, where the file system has such; links would change both.
      cpSync(model, this.path, { recursive: true, dereference: true, mode: constants.COPYFILE_FICLONE });
      chmodSync(this.path, statSync(model).mode | 0o700);
    } catch (error) {
      this.remove();
      throw notCopied(out, error);
    }
  }

  /** How the probabilities of a question are made in the model that was copied. */
  calibrationOf({ key, kind }: { readonly key: string; readonly kind: Kind }): Calibration {
    const { calibration, temperature } = this.#config;
    const own = calibration?.[key];
    return { temperature: own?.temperature ?? temperature?.[kind] ?? 1, bias: own?.bias ?? [] };
  }

  /** Lets the copy read all logits at one temperature. */
  writeTemperature(temperature: number): void {
    const everywhere = Object.fromEntries(KINDS.map((kind) => [kind, temperature]));
    const text = changed(this.#text, ['temperature'], everywhere);
    this.#write(changed(text, ['calibration'], undefined));
  }

  /** Gives the copy what was copied, with these calibrations beside or in place of those that are in it. */
  writeCalibrations(calibrations: ReadonlyMap<string, Calibration>): void {
    let text = this.#text;
    for (const [key, calibration] of calibrations) text = changed(text, ['calibration', key], calibration);
    this.#write(text);
  }

  /** Puts the copy in its place; what was there is gone. */
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

  /** Removes what is not in its place. */
  remove(): void {
    rmSync(this.#temporary, { recursive: true, force: true });
  }

  #write(text: string): void {
    const file = join(this.path, CONFIG);
    // The file that was copied may be read-only.
    rmSync(file, { force: true });
    writeFileSync(file, text);
  }
}

/** The text with one value changed, or taken out, and nothing else. */
function changed(text: string, path: JSONPath, value: unknown): string {
  return applyEdits(text, modify(text, path, value, { formattingOptions: { insertSpaces: true, tabSize: 2 } }));
}

function notCopied(out: string, error: unknown): unknown {
  return errorCode(error) === '' ? error : new Refusal(`${out}: cannot be written (${errorCode(error)})`);
}
