/** Labelled rows: a state, a question about it, and the right answer. */

import { extname } from 'node:path';
import { canonicalQuestions } from '../engine/addon.ts';
import { EngineError } from '../engine/contract.ts';
import { isJson, memberTexts, objectText } from '../file-run/json-text.ts';
import { openCsv } from '../file-run/read-csv.ts';
import { openJsonl } from '../file-run/read-jsonl.ts';
import { type GoodRow, type Source, START } from '../file-run/row.ts';
import { sha256Of } from '../files/sha256.ts';
import { errorCode } from '../files/system-error.ts';
import { Refusal } from '../refusal.ts';

export type Kind = 'choice' | 'score' | 'noul';

/** A question that rows ask, the same one for all of its spellings. */
export interface AskedQuestion {
  /** The key of its calibration: the hex sha256 of its canonical JSON. */
  readonly key: string;
  readonly kind: Kind;
  readonly instructions: string;
  /** The names of its options as in an answer, in the caller's order. */
  readonly options: readonly string[];
  /** The question as a row spells it. */
  readonly json: string;
  /** The way in which a model reads it that reads questions that ask the same alike. */
  readonly unified: Reading;
}

/** A way in which a model reads a question. */
export interface Reading {
  readonly kind: Kind;
  /** For each option its place among those that are read; options that are read as one share theirs. */
  readonly places: readonly number[];
}

export interface LabelledRow {
  /** The row's place in the file, such as `line 7`. */
  readonly where: string;
  readonly stateJson: string;
  readonly question: AskedQuestion;
  /** The index of the right option. */
  readonly label: number;
}

/** The parts of a row, as JSON texts. */
interface LabelTexts {
  readonly where: string;
  readonly state: string;
  readonly question: string;
  readonly label: string;
}

const WANTED = 'must end in .jsonl, .ndjson, .csv or .tsv';

/**
 * Reads the rows of a file.
 *
 * @throws Refusal when the file cannot be read or has no rows, or at the first row that is wrong.
 */
export async function readLabels(path: string, maxRowBytes: number): Promise<LabelledRow[]> {
  const reader = new RowReader(path);
  const rows: LabelledRow[] = [];
  for await (const texts of labelTexts(path, maxRowBytes)) rows.push(reader.row(texts));
  if (rows.length === 0) throw new Refusal(`${path}: no rows`);
  return rows;
}

async function* labelTexts(path: string, maxRowBytes: number): AsyncGenerator<LabelTexts> {
  const ending = extname(path).toLowerCase();
  const isCsv = ending === '.csv' || ending === '.tsv';
  if (!isCsv && ending !== '.jsonl' && ending !== '.ndjson') throw new Refusal(`${path}: ${WANTED}`);
  const word = isCsv ? 'row' : 'line';
  const source = await opened(path, { maxRowBytes, delimiter: isCsv ? (ending === '.tsv' ? '\t' : ',') : undefined });
  try {
    const names = source.columns.map(({ name }) => name);
    if (isCsv) requireLabelColumns(path, names);
    for await (const row of source.rows(START)) {
      const where = `${word} ${row.number}`;
      if (row.problem) throw new Refusal(`${path}: ${where}: ${row.problem.message}`);
      const texts = isCsv ? csvTexts(names, row) : memberTexts(row.stateJson);
      yield { where, ...required(texts, `${path}: ${where}`) };
    }
  } finally {
    await source.close();
  }
}

async function opened(
  path: string,
  { maxRowBytes, delimiter }: { readonly maxRowBytes: number; readonly delimiter: string | undefined },
): Promise<Source> {
  const options = { path, maxRowBytes, state: [], keep: undefined };
  try {
    return delimiter === undefined ? await openJsonl(options) : await openCsv({ ...options, delimiter });
  } catch (error) {
    if (errorCode(error) === '' || error instanceof Refusal) throw error;
    throw new Refusal(`${path}: cannot be read (${errorCode(error)})`);
  }
}

function requireLabelColumns(path: string, names: readonly string[]): void {
  const missing = ['state', 'type', 'instructions', 'label'].find((name) => !names.includes(name));
  if (missing === undefined) return;
  throw new Refusal(`${path}: no column ${JSON.stringify(missing)}; there are ${names.join(', ')}`);
}

/**
 * Returns a CSV record as the members of a JSON line. Cells that can only be JSON are taken as JSON: the criteria, and
 * a label that is not one of a choice.
 */
function csvTexts(names: readonly string[], { cells }: GoodRow): ReadonlyMap<string, string> {
  const cell = (name: string) => cells[names.indexOf(name)] ?? '';
  const [state, type, criteria, label] = [cell('state'), cell('type'), cell('criteria').trim(), cell('label').trim()];
  const members: [string, string][] = [
    ['type', JSON.stringify(type.trim())],
    ['instructions', JSON.stringify(cell('instructions'))],
  ];
  if (criteria !== '') members.push(['criteria', criteria]);
  return new Map([
    ['state', /^[[{]/.test(state) && isJson(state) ? state : JSON.stringify(state)],
    ['q', objectText(members)],
    ['label', type.trim() === 'choice' ? JSON.stringify(cell('label')) : label.toLowerCase()],
  ]);
}

function required(texts: ReadonlyMap<string, string> | undefined, at: string): Omit<LabelTexts, 'where'> {
  if (texts === undefined) throw new Refusal(`${at}: must be an object with state, q and label`);
  const [state, question, label] = [texts.get('state'), texts.get('q') ?? texts.get('question'), texts.get('label')];
  if (state === undefined) throw new Refusal(`${at}: no "state"`);
  if (question === undefined) throw new Refusal(`${at}: no "q"`);
  if (label === undefined) throw new Refusal(`${at}: no "label"`);
  // CSV cells become parts of a request: a text that is not one JSON value could close its question and add other
  // fields.
  if (!isJson(question)) throw new Refusal(`${at}: criteria is not valid JSON`);
  return { state, question, label };
}

/** A maker of rows, which parses a question that stands in many rows only once. */
class RowReader {
  readonly #path: string;
  readonly #bySpelling = new Map<string, AskedQuestion>();
  readonly #byKey = new Map<string, AskedQuestion>();

  constructor(path: string) {
    this.#path = path;
  }

  row({ where, state, question: spelling, label }: LabelTexts): LabelledRow {
    const question = this.#bySpelling.get(spelling) ?? this.#read(spelling, where);
    const index = labelIndex(question, label);
    if (index >= 0) return { where, stateJson: inOneSpelling(state), question, label: index };
    throw new Refusal(`${this.#path}: ${where}: label ${label || 'missing'} is no answer: ${answersOf(question)}`);
  }

  #read(spelling: string, where: string): AskedQuestion {
    const found = askedQuestion(this.#path, spelling, where);
    const question = this.#byKey.get(found.key) ?? found;
    this.#byKey.set(found.key, question);
    this.#bySpelling.set(spelling, question);
    return question;
  }
}

function askedQuestion(path: string, json: string, where: string): AskedQuestion {
  try {
    const body = `{"state":"","questions":{${JSON.stringify(where)}:${json}}}`;
    const [question] = canonicalQuestions(Buffer.from(body));
    const { canonical = '', unifiedKind, unifiedPlaces: places = [] } = question ?? {};
    const [kind, instructions, options] = JSON.parse(canonical) as [Kind, string, [string, string | null][]];
    const key = sha256Of(canonical);
    const unified = { kind: unifiedKind as Kind, places };
    return { key, kind, instructions, options: options.map(([name]) => name), json, unified };
  } catch (error) {
    if (!(error instanceof EngineError)) throw error;
    const message = error.message.startsWith(where) ? error.message : `${where}: ${error.message}`;
    throw new Refusal(`${path}: ${message}`);
  }
}

/** Returns the index of a label among the question's options; -1 if it is none of them. */
function labelIndex({ kind, options }: AskedQuestion, json: string): number {
  const label: unknown = isJson(json) ? JSON.parse(json) : undefined;
  if (kind === 'choice') return typeof label === 'string' ? options.indexOf(label) : -1;
  if (kind === 'noul') return typeof label === 'boolean' ? Number(label) : -1;
  return typeof label === 'number' && Number.isInteger(label) && label < options.length ? label : -1;
}

function answersOf({ kind, options }: AskedQuestion): string {
  if (kind === 'noul') return 'must be true or false';
  if (kind === 'score') return `must be a level from 0 to ${options.length - 1}`;
  const names = options.slice(0, 10).map((name) => JSON.stringify(name));
  return `must be one of ${names.join(', ')}${options.length > names.length ? ', …' : ''}`;
}

/**
 * Returns the state in one spelling: a text is the same however it is escaped, but the model reads any other value as
 * it is spelled.
 */
function inOneSpelling(json: string): string {
  return json.startsWith('"') ? JSON.stringify(JSON.parse(json)) : json;
}
