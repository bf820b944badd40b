/** The plan of a run, made from the options of the command. */

import { readFileSync } from 'node:fs';
import { extname, parse, resolve } from 'node:path';
import { sha256Of } from '../files/sha256.ts';
import { errorCode } from '../files/system-error.ts';
import { Refusal, WrongUsage } from '../refusal.ts';
import type { OutputPaths } from './output.ts';
import type { Selection } from './row.ts';

type FileFormat = 'jsonl' | 'csv' | 'parquet';

/** The options of `svc batch` that determine its input, questions and output. */
export interface FileRunOptions {
  readonly questions?: string;
  readonly output?: string;
  readonly errors?: string;
  readonly format?: string;
  readonly state?: readonly string[];
  readonly keep?: string;
  readonly delimiter?: string;
  readonly partRows?: string;
  readonly resume?: boolean;
  readonly overwrite?: boolean;
}

export interface FileRunPlan {
  readonly input: string;
  readonly format: FileFormat;
  readonly selection: Selection;
  readonly delimiter: string;
  readonly partRows: number;
  /** The questions as JSON text, and the file that they come from. */
  readonly questionsJson: string;
  readonly questionsFile: string;
  /** Whether stdin is the input or stdout the output: such a run has no journal, and cannot be resumed. */
  readonly isStream: boolean;
  /** The file of bad rows of such a run; undefined if they go to stderr. */
  readonly streamErrors: string | undefined;
  /** The output's path as the user gave it; for Parquet, the path into which the numbers of the parts are inserted. */
  readonly output: string;
  readonly paths: OutputPaths;
  readonly isResumed: boolean;
  readonly isOverwritten: boolean;
  /** A digest of everything that the rows of the output depend on, except the input and the model. */
  readonly settings: string;
}

const ENDINGS: Readonly<Record<string, FileFormat>> = {
  '.jsonl': 'jsonl',
  '.ndjson': 'jsonl',
  '.csv': 'csv',
  '.tsv': 'csv',
  '.parquet': 'parquet',
};

/** The name of a file that stands for stdin or stdout. */
const STREAM = '-';

const DEFAULT_PART_ROWS = 100_000;
const MAX_PART_ROWS = 10_000_000;

/**
 * Returns the plan for the file `input`.
 *
 * @throws Refusal when an option or the file with the questions is wrong.
 */
export function fileRunPlan(input: string, options: FileRunOptions): FileRunPlan {
  const { questions, state = [], keep } = options;
  if (questions === undefined) throw new WrongUsage('what is asked? Give --questions FILE; see svc batch --help');
  const isStream = input === STREAM || options.output === STREAM;
  const format = fileFormat(input, options.format);
  if (isStream) requireStreamable(format, options);
  const partRows = wholeNumber('--part-rows', options.partRows ?? String(DEFAULT_PART_ROWS), MAX_PART_ROWS);
  const delimiter = options.delimiter ?? (extname(input).toLowerCase() === '.tsv' ? '\t' : ',');
  if (delimiter.length !== 1 || /["\r\n]/.test(delimiter)) throw new WrongUsage('--delimiter: must be one character');
  const output = isStream ? STREAM : (options.output ?? withStem(input, (stem) => `${stem}.answers`));
  const selection = {
    state,
    keep: keep
      ?.split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  };
  const paths = outputPaths(format, output, options.errors);
  const files = isStream ? [options.errors ?? ''] : [paths.rows, paths.errors, paths.journal];
  requireOwnFiles([input, questions, ...files].filter((file) => file !== '' && file !== STREAM));
  if (options.resume && options.overwrite) throw new WrongUsage('--resume and --overwrite exclude each other');
  const questionsJson = readQuestionsFile(questions);
  const meaning = [
    format,
    questionsJson,
    state,
    selection.keep ?? null,
    delimiter,
    format === 'parquet' ? partRows : 0,
  ];
  return {
    ...{ input, format, selection, delimiter, partRows, questionsJson, questionsFile: questions, output },
    paths,
    isStream,
    streamErrors: isStream ? options.errors : undefined,
    isResumed: options.resume === true,
    isOverwritten: options.overwrite === true,
    settings: sha256Of(JSON.stringify(meaning)),
  };
}

/**
 * Checks that a run over stdin or to stdout is asked for nothing that only files can do.
 *
 * @throws WrongUsage when it is.
 */
function requireStreamable(format: FileFormat, { output = STREAM, resume }: FileRunOptions): void {
  if (format === 'parquet') throw new WrongUsage('Parquet needs files: its index stands at its end');
  if (resume) throw new WrongUsage('--resume needs files: a stream cannot be read again');
  if (output === STREAM) return;
  throw new WrongUsage('rows from stdin are answered on stdout: leave out --output, and redirect stdout to a file');
}

/** Checks that no output file is also an input file or another output. */
function requireOwnFiles(files: readonly string[]): void {
  const paths = files.map((file) => resolve(file));
  const at = paths.findIndex((path, index) => paths.indexOf(path) !== index);
  if (at >= 0) throw new Refusal(`${paths[at]}: cannot be two of input, questions, output and errors`);
}

function fileFormat(input: string, chosen: string | undefined): FileFormat {
  if (input === STREAM && chosen === undefined) return 'jsonl';
  const format = chosen === undefined ? ENDINGS[extname(input).toLowerCase()] : ENDINGS[`.${chosen}`];
  if (format !== undefined) return format;
  if (chosen !== undefined) throw new WrongUsage('--format: must be one of jsonl, csv, parquet');
  throw new WrongUsage(`${input}: ends in none of ${Object.keys(ENDINGS).join(', ')}; give --format`);
}

function outputPaths(format: FileFormat, output: string, errors: string | undefined): OutputPaths {
  const path = resolve(output);
  return {
    rows: format === 'parquet' ? `${path}.rows` : path,
    errors: resolve(errors ?? `${output}.errors.jsonl`),
    journal: `${path}.progress`,
    part:
      format === 'parquet'
        ? (number) => withStem(path, (stem) => `${stem}-${String(number).padStart(5, '0')}`)
        : undefined,
  };
}

function withStem(path: string, change: (stem: string) => string): string {
  const { dir, name, ext } = parse(path);
  const file = `${change(name)}${ext}`;
  return dir === '' ? file : `${dir}${dir.endsWith('/') || dir.endsWith('\\') ? '' : '/'}${file}`;
}

/**
 * Returns the file's text, which becomes a part of every request: a text that is not one JSON object could close the
 * `questions` and add other fields.
 */
function readQuestionsFile(file: string): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8')
      .replace(/^\uFEFF/, '')
      .trim();
  } catch (error) {
    throw new Refusal(`${file}: cannot be read (${errorCode(error)})`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Refusal(`${file}: is not valid JSON`);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Refusal(`${file}: must be an object of questions, as in "questions" of a request`);
  }
  if (isRequest(value))
    throw new Refusal(`${file}: is a whole request; the file must hold only what "questions" holds`);
  return text;
}

/** Whether an object of questions is rather a request: its `questions` is no question, and it has a `state`. */
function isRequest(value: object): boolean {
  const { state, questions } = value as { readonly state?: unknown; readonly questions?: unknown };
  const isQuestion = typeof questions !== 'object' || questions === null || 'type' in questions;
  return state !== undefined && !isQuestion;
}

/**
 * Returns the number that `text` spells, at least 1.
 *
 * @throws WrongUsage when `text` is not a whole number, or the number is less than 1 or above `most`.
 */
export function wholeNumber(flag: string, text: string, most: number): number {
  const number = /^\d+$/.test(text) ? Number(text) : 0;
  if (number < 1 || number > most) throw new WrongUsage(`${flag}: must be a whole number from 1 to ${most}`);
  return number;
}
