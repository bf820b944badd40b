/** Inputs of runs, and functions that read their outputs. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { parquetWriteFile } from 'hyparquet-writer';

/** One question of each type; a JavaScript object would put the options into another order. */
export const QUESTIONS =
  '{"refund":{"type":"noul","instructions":"Money back?"},' +
  '"team":{"type":"choice","instructions":"Which?","criteria":{"10":"ten","9":"nine"}},' +
  '"anger":{"type":"score","criteria":["calm","angry"]}}';

const WORDS = ['order', 'late', 'refund', 'phone', 'card', 'twice', 'angry', 'é 日', '"quoted"', 'two\nlines', 'a,b'];

/** Returns the text of row `n`, which differs from every other. */
export function textOfRow(n: number): string {
  return `${n} ${[1, 2, 3, 4].map((at) => WORDS[(n * 7 + at * (n % 13)) % WORDS.length]).join(' ')}`;
}

/** The distance between two bad rows: every row whose number is a multiple of it is bad. */
export const BAD_EVERY = 97;

const numbers = (count: number) => Array.from({ length: count }, (_, at) => at + 1);

/** Writes `count` rows in the format that the ending of the name says; rows of Parquet are all good. */
export function writeRows(path: string, count: number): void {
  const isBad = (n: number) => n % BAD_EVERY === 0;
  if (path.endsWith('.parquet')) {
    const ids = numbers(count);
    parquetWriteFile({
      filename: path,
      rowGroupSize: 1000,
      columnData: [
        { name: 'id', data: ids.map(BigInt), type: 'INT64' },
        { name: 'text', data: ids.map(textOfRow), type: 'STRING' },
      ],
    });
    return;
  }
  const quoted = (text: string) => `"${text.replaceAll('"', '""')}"`;
  const lines = path.endsWith('.csv')
    ? ['id,text', ...numbers(count).map((n) => (isBad(n) ? `${n}` : `${n},${quoted(textOfRow(n))}`))]
    : numbers(count).map((n) => (isBad(n) ? `{"id": ${n}` : JSON.stringify({ id: n, text: textOfRow(n) })));
  writeFileSync(path, `${lines.join('\n')}\n`);
}

/** Returns the contents of all output files in `folder` except the journal, by name. */
export function outputFiles(folder: string): Record<string, string> {
  const names = readdirSync(folder).filter((name) => name.includes('.answers') && !name.includes('.progress'));
  return Object.fromEntries(names.sort().map((name) => [name, readFileSync(join(folder, name), 'latin1')]));
}

/** Returns the rows of a Parquet file. */
export async function parquetRows(path: string): Promise<Record<string, unknown>[]> {
  return parquetReadObjects({ file: await asyncBufferFromFile(path) });
}
