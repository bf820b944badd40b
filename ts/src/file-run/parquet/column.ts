/** The values of one column of one row group, page by page. */
import type { FileHandle } from 'node:fs/promises';
import type { ColumnMetaData, PageHeader, SchemaTree } from 'hyparquet';
import { parquetHeader, readPage } from 'hyparquet/src/column.js';
import { convert, DEFAULT_PARSERS } from 'hyparquet/src/convert.js';
import { getMaxDefinitionLevel, getMaxRepetitionLevel, isFlatColumn } from 'hyparquet/src/schema.js';
import { readPart } from '../file-part.ts';
import { Damage } from './damage.ts';
import { decompress } from './decompress.ts';
import { LazyJson, LazyText } from './lazy.ts';
import { atLeast, checkLevels, checkLevelsV2, checkValues, type LevelsCheck, type PageLevels } from './page-check.ts';
import { CutShort, structEnd } from './thrift.ts';

/** The largest page, in bytes; DuckDB writes pages of up to 100 MB. */
const MAX_PAGE_BYTES = 128 * 1024 * 1024;
/** The largest number of values in a page; columns that take hardly any space have pages of many values. */
const MAX_PAGE_VALUES = 4 * 1024 * 1024;
const FIRST_HEADER_BYTES = 4 * 1024;
const MAX_HEADER_BYTES = 1024 * 1024;
const BYTES_PER_LEVEL = 24;

const PARSERS = {
  ...DEFAULT_PARSERS,
  stringFromBytes: (bytes: Uint8Array | undefined) => bytes && new LazyText(bytes),
  jsonFromBytes: (bytes: Uint8Array | undefined) => bytes && new LazyJson(bytes),
};

type Values = ReturnType<typeof convert>;

interface ColumnOptions {
  readonly file: FileHandle;
  readonly metadata: ColumnMetaData;
  /** The path in the schema, from the root to the column. */
  readonly schemaPath: SchemaTree[];
  /**
   * Returns the number of further bytes that may be held, besides the bytes that this and all other columns hold
   * already.
   */
  readonly room: () => number;
  /** The number of rows in its row group. */
  readonly rows: number;
}

interface Page {
  readonly header: PageHeader;
  readonly body: { readonly start: number; readonly end: number };
}

export class ColumnReader {
  /** The names from the top of the table to the column. */
  readonly path: readonly string[];
  readonly #options: ColumnOptions;
  readonly #levels: LevelsCheck;
  readonly #isFlat: boolean;
  readonly #decoder: Parameters<typeof readPage>[2];
  readonly #end: number;
  #at: number;
  #dictionary: Values | undefined;
  #dictionaryBytes = 0;
  #values: Values = [];
  #next = 0;
  #valuesBytes = 0;
  /** The last row of a page, which may continue in the next page. */
  #open: unknown[] = [];
  #openBytes = 0;

  constructor(options: ColumnOptions) {
    const { metadata, schemaPath } = options;
    const element = schemaPath.at(-1)?.element;
    if (element === undefined || element.type !== metadata.type) throw new Damage('its type is not that of the table');
    this.#options = options;
    this.path = metadata.path_in_schema;
    this.#levels = {
      maxRepetition: getMaxRepetitionLevel(schemaPath),
      maxDefinition: getMaxDefinitionLevel(schemaPath),
    };
    this.#isFlat = isFlatColumn(schemaPath);
    if (this.#isFlat && Number(metadata.num_values) !== options.rows)
      throw new Damage('it has not the rows of its group');
    // biome-ignore lint/suspicious/noExplicitAny: the library's parsers return what they like; its type names strings.
    const parsers = PARSERS as any;
    this.#decoder = { pathInSchema: metadata.path_in_schema, schemaPath, ...metadata, element, parsers };
    this.#at = Number(metadata.dictionary_page_offset || metadata.data_page_offset);
    this.#end = this.#at + atLeast(0, metadata.total_compressed_size);
    atLeast(0, this.#at);
  }

  /** The number of bytes that the reader holds, as far as they are known. */
  get heldBytes(): number {
    return this.#dictionaryBytes + (this.ready > 0 ? this.#valuesBytes : this.#openBytes);
  }

  /** The number of rows that are ready to be taken. */
  get ready(): number {
    return this.#values.length - this.#next;
  }

  /** Returns the next `count` rows, or fewer if fewer are ready. */
  take(count: number): unknown[] {
    const part = this.#values.slice(this.#next, this.#next + count);
    const taken: unknown[] = Array.isArray(part) ? part : [...part];
    this.#next += count;
    if (this.ready === 0) [this.#values, this.#next] = [[], 0];
    // An undefined value is an index outside the dictionary; a missing value is null.
    if (taken.includes(undefined)) throw new Damage('a value is not in its dictionary');
    return taken;
  }

  /**
   * Reads on until a row is ready. Pages that lie within the first `skip` rows are skipped where possible. Returns the
   * number of skipped rows.
   */
  async fill(skip: number): Promise<number> {
    let skipped = 0;
    while (this.ready === 0) {
      const page = await this.#nextPage();
      if (page === undefined) {
        if (this.#open.length === 0) throw new Damage('it has fewer rows than the table');
        [this.#values, this.#open] = [this.#open, []];
        [this.#valuesBytes, this.#openBytes] = [this.#openBytes, 0];
        break;
      }
      const rows = this.#rowsOf(page.header);
      if (rows !== undefined && this.#open.length === 0 && skipped + rows <= skip) skipped += rows;
      else await this.#read(page);
    }
    return skipped;
  }

  /** Returns the number of rows of a page; undefined if only decoding would tell. */
  #rowsOf({ data_page_header: v1, data_page_header_v2: v2 }: PageHeader): number | undefined {
    if (v2) return atLeast(0, v2.num_rows);
    return v1 && this.#isFlat ? atLeast(0, v1.num_values) : undefined;
  }

  async #nextPage(): Promise<Page | undefined> {
    const { file } = this.#options;
    if (this.#at >= this.#end - 1) return undefined;
    for (let size = FIRST_HEADER_BYTES; ; size *= 16) {
      const bytes = await readPart(file, this.#at, Math.min(this.#at + size, this.#end));
      try {
        const start = this.#at + structEnd(bytes, 0);
        const header = headerOf(bytes);
        const end = start + atLeast(0, header.compressed_page_size);
        if (end > this.#end) throw new Damage('a page is cut short');
        this.#at = end;
        return { header, body: { start, end } };
      } catch (error) {
        if (!(error instanceof CutShort) || size >= MAX_HEADER_BYTES || bytes.length < size) throw error;
      }
    }
  }

  async #read({ header, body }: Page): Promise<void> {
    if (header.type === 'INDEX_PAGE') return;
    const count = atLeast(0, valueCount(header));
    const bytes = atLeast(0, header.uncompressed_page_size);
    const largest = Math.max(bytes, body.end - body.start);
    if (count > MAX_PAGE_VALUES) throw new Damage(`a page of ${count} values, the limit is ${MAX_PAGE_VALUES}`);
    if (largest > MAX_PAGE_BYTES) throw new Damage(`a page of ${largest} bytes, the limit is ${MAX_PAGE_BYTES}`);
    this.#require(bytes);
    const compressed = await readPart(this.#options.file, body.start, body.end);
    if (compressed.length < body.end - body.start) throw new Damage('a page is cut short');
    if (count > 0) this.#decode(header, compressed, count);
  }

  #require(bytes: number): void {
    const { room } = this.#options;
    if (bytes > room())
      throw new Damage(`its pages take ${bytes} bytes more than the ${room()} that are left for them`);
  }

  #decode(header: PageHeader, compressed: Uint8Array, count: number): void {
    const { codec } = this.#options.metadata;
    const v2 = header.data_page_header_v2;
    const levelsV2 = v2 && checkLevelsV2(compressed, v2, this.#levels);
    const body = compressed.subarray(levelsV2?.end ?? 0);
    const length = atLeast(0, header.uncompressed_page_size - (levelsV2?.end ?? 0));
    const page = decompress(v2?.is_compressed === false ? 'UNCOMPRESSED' : codec, body, length);
    const cost = header.uncompressed_page_size + this.#check({ header, page, count, levelsV2 });
    this.#require(cost);
    const decoder = { ...this.#decoder, compressors: { [codec]: () => page } };
    const view = new DataView(compressed.buffer, compressed.byteOffset, compressed.length);
    const { data = [] } = readPage({ view, offset: 0 }, header, decoder, this.#dictionary, this.#open, 0);
    if (data.length === 0) throw new Damage('a page has no values');
    if (header.dictionary_page_header) {
      this.#dictionary = convert(data, this.#decoder);
      this.#dictionaryBytes = cost;
    } else if (this.#levels.maxRepetition > 0) {
      this.#holdOpen(data as unknown[], cost);
    } else {
      if (data.length !== count) throw new Damage('a page has not as many values as it says');
      [this.#values, this.#valuesBytes, this.#open] = [data, cost, []];
    }
  }

  /**
   * Keeps the last row open, since it may continue in the next page. The rows before it are ready, and the row left
   * open by the previous page is one of them.
   */
  #holdOpen(rows: unknown[], cost: number): void {
    const last = rows.pop();
    const held = this.#openBytes + cost;
    [this.#values, this.#valuesBytes] = [rows, held];
    // A row keeps the pages that it is stored in alive.
    [this.#open, this.#openBytes] = [[last], rows.length === 0 ? held : cost];
  }

  /** Returns the number of bytes that the page's contents take once they are decoded. */
  #check({ header, page, count, levelsV2 }: DecompressedPage): number {
    const { type } = this.#options.metadata;
    const kind = { type, typeLength: this.#decoder.element.type_length ?? 0 };
    if (header.dictionary_page_header) return checkValues(page, { ...kind, encoding: 'PLAIN', count });
    const encoding = (header.data_page_header ?? header.data_page_header_v2)?.encoding;
    const { present, end } = levelsV2 ?? checkLevels(page, count, this.#levels);
    if (encoding?.endsWith('DICTIONARY') && this.#dictionary === undefined && present > 0) {
      throw new Damage('a page has no dictionary');
    }
    const values = levelsV2 ? page : page.subarray(end);
    const levelBytes = count * BYTES_PER_LEVEL * (1 + this.#levels.maxDefinition);
    return levelBytes + checkValues(values, { ...kind, encoding, count: present });
  }
}

interface DecompressedPage {
  readonly header: PageHeader;
  readonly page: Uint8Array;
  readonly count: number;
  readonly levelsV2: PageLevels | undefined;
}

/**
 * Returns the header with the fields of its own type only, so that the decoder reads the same fields that were checked.
 */
function headerOf(bytes: Uint8Array): PageHeader {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const { data_page_header, data_page_header_v2, dictionary_page_header, ...header } = parquetHeader({
    view,
    offset: 0,
  });
  if (header.type === 'DATA_PAGE' && data_page_header) return { ...header, data_page_header };
  if (header.type === 'DATA_PAGE_V2' && data_page_header_v2) return { ...header, data_page_header_v2 };
  if (header.type === 'DICTIONARY_PAGE' && dictionary_page_header) return { ...header, dictionary_page_header };
  if (header.type === 'INDEX_PAGE') return header;
  throw new Damage('a page is of no type that is known');
}

function valueCount(header: PageHeader): number | undefined {
  const { data_page_header: v1, data_page_header_v2: v2, dictionary_page_header: dictionary } = header;
  return (v1 ?? v2 ?? dictionary)?.num_values;
}
