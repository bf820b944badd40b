/** Requests by which a published model is compared with its maker's code: random, and the same for the same seed. */
import { randomNumbers } from '../../tune/labelled-rows.ts';

const PLAIN = [
  ...['order', 'late', 'refund', 'phone', 'card', 'twice', 'angry', 'price', 'outage', 'invoice', 'billing', 'support'],
  ...[
    'the',
    'customer',
    'was',
    'charged',
    'and',
    'nobody',
    'answers',
    'is',
    'it',
    'urgent',
    'true',
    'false',
    '17',
    '12.50',
  ],
];
/** Words that tokenizers, templates and JSON could stumble over. */
const ODD = [
  ...[
    'é',
    'ß',
    'Ünïcode',
    '日本語',
    '中文',
    '한국어',
    '😀',
    '👩‍👩‍👧',
    '🇩🇪',
    '\u0000',
    '\n',
    '\n\n',
    '\r\n',
    '\t',
    '  ',
    '\u00a0',
  ],
  ...['[MASK]', '[CLS]', '[SEP]', '[PAD]', '<mask>', '<bos>', '<eos>', '<pad>', 'a[MASK]b', '[mask]', '[UNK]'],
  ...[
    '{name}',
    '{description}',
    '{state}',
    '{type}',
    '"',
    '\\',
    '\\n',
    ':',
    ',',
    '...',
    '%s',
    '\u2028',
    '\u007f',
    '\ufeff',
  ],
];
/** Numbers as JSON may spell them. */
const NUMBERS = [
  ...[
    '0',
    '-0',
    '-0.0',
    '1.50',
    '1e3',
    '1E+2',
    '12e-7',
    '0.1',
    '100000.0',
    '1e16',
    '1e22',
    '123456789012345680',
    '5e-324',
  ],
  ...[
    '12345678901234567890',
    '0.30000000000000004',
    '9007199254740993',
    '1.0',
    '-17',
    '1e15',
    '999999999999999.9',
    '1e-5',
  ],
];

/** The parts of random requests. */
class Maker {
  readonly #random: () => number;
  readonly #odd: readonly string[];

  constructor(seed: number, odd: readonly string[]) {
    this.#random = randomNumbers(seed);
    this.#odd = [...ODD, ...odd];
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  one<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item;
  }

  /** Whether something happens that happens this often. */
  is(often: number): boolean {
    return this.#random() < often;
  }

  words(count: number): string {
    const odd = this.one([0, 0, 0, 0.1, 0.5]);
    return Array.from({ length: count }, () => this.one(this.is(odd) ? this.#odd : PLAIN)).join(' ');
  }

  /** Returns a state as JSON text: a string, or another value in any spelling. */
  state(): string {
    if (this.is(0.3)) return this.json(3);
    return JSON.stringify(this.words(this.one([0, 1, 3, 12, 40, 40, 150, 600, 1500])));
  }

  json(depth: number): string {
    const space = () => this.one(['', '', ' ', '  ']);
    const list = (open: string, items: readonly string[], close: string) =>
      `${open}${space()}${items.join(`${space()},${space()}`)}${space()}${close}`;
    const count = this.one([0, 1, 3, 6]);
    const key = () => JSON.stringify(this.one(['b', 'a', 'Z', 'é', '10', '9', 'note', 'id', 'name', '😀']));
    switch (depth === 0 ? this.below(2) : this.below(5)) {
      case 0:
        return this.one([...NUMBERS, 'true', 'false', 'null']);
      case 1:
        return this.text(this.words(this.below(9)));
      case 2:
        return list(
          '[',
          Array.from({ length: count }, () => this.json(depth - 1)),
          ']',
        );
      default: {
        const keys = [...new Set(Array.from({ length: count }, key))];
        return list(
          '{',
          keys.map((name) => `${name}${space()}:${space()}${this.json(depth - 1)}`),
          '}',
        );
      }
    }
  }

  /** Returns a text in one of the spellings that JSON has for it. */
  text(text: string): string {
    const plain = JSON.stringify(text);
    if (this.is(0.7)) return plain;
    return plain.replaceAll(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  }

  description(name: string): string | null {
    switch (this.below(8)) {
      case 0:
        return null;
      case 1:
        return '';
      case 2:
        return name;
      case 3:
        return this.words(this.one([60, 90]));
      default:
        return this.words(1 + this.below(6));
    }
  }

  /** Returns different names, none of them empty. */
  names(count: number): string[] {
    const names = Array.from({ length: count }, (_, index) => this.one([this.words(1), `${this.words(2)} ${index}`]));
    return names.map((name, index) => (name.trim() === '' || names.indexOf(name) < index ? `${name}${index}` : name));
  }

  question(): object {
    const many = this.is(0.06) ? 20 + this.below(41) : 2 + this.below(11);
    const instructions = this.is(0.05) ? {} : { instructions: this.words(this.one([0, 2, 5, 9, 80])) };
    switch (this.below(3)) {
      case 0: {
        const names = this.names(many);
        const described = names.map((name) => [name, this.description(name)] as const);
        return { type: 'choice', ...instructions, criteria: this.is(0.15) ? names : Object.fromEntries(described) };
      }
      case 1: {
        const levels = this.names(many).map((name) => (this.is(0.1) ? `${name} ${this.words(70)}` : name));
        return { type: 'score', ...instructions, criteria: levels };
      }
      default: {
        const sides = this.one([[], ['true'], ['false'], ['true', 'false'], ['false', 'true']]);
        const described = sides.map((side) => [side, this.description(side)] as const);
        return { type: 'noul', ...instructions, ...(this.is(0.8) && { criteria: Object.fromEntries(described) }) };
      }
    }
  }

  /** Returns a request as JSON text on one line. */
  request(): string {
    const questions = Array.from({ length: this.one([1, 1, 1, 2, 3]) }, (_, index) => [`q${index}`, this.question()]);
    return `{"state":${this.state()},"questions":${JSON.stringify(Object.fromEntries(questions))}}`;
  }
}

/**
 * Returns random requests, each a line of JSON: all types; descriptions that are missing, empty or equal to the name; 2
 * to 60 options; states that are texts or JSON; texts longer than every budget; masks, other special tokens,
 * placeholders, emoji, CJK, NUL and lone newlines in all of them, and the words `odd` that a family may stumble over.
 */
export function publishedRequests(odd: readonly string[] = [], count = 300, seed = 27): string[] {
  const maker = new Maker(seed, odd);
  return Array.from({ length: count }, () => maker.request());
}
