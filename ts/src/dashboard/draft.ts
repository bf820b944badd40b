/**
 * A decision request as the contents of a form, and as JSON text. The text is composed by hand and parsed as a syntax
 * tree: a JavaScript object would put option names that look like numbers first, and would not keep a state's raw text.
 */
import { type Node, type ParseError, parseTree } from 'jsonc-parser';
import { QUESTION_TYPES, type QuestionType } from '../schemas/names.ts';

export interface OptionDraft {
  readonly name: string;
  readonly description: string;
}

/**
 * One question. Only the criteria of its own type are sent; those of the other types are kept in case the type is
 * changed back.
 */
export interface QuestionDraft {
  readonly id: string;
  readonly type: QuestionType;
  readonly instructions: string;
  readonly options: readonly OptionDraft[];
  readonly levels: readonly string[];
  /** The meaning of yes; `no` holds that of no. Both may be empty. */
  readonly yes: string;
  readonly no: string;
}

export interface RequestDraft {
  /** Whether `state` is raw JSON instead of a text. */
  readonly isJson: boolean;
  readonly state: string;
  readonly questions: readonly QuestionDraft[];
}

const INDENT = '  ';

/** Returns the JSON text of a request, in the order of the form. Raw JSON is inserted unchanged, valid or not. */
export function draftText({ isJson, state, questions }: RequestDraft): string {
  const members = questions.map((question) => memberLine(question.id, questionText(question), 2));
  return object(
    [
      memberLine('state', isJson ? state.trim() : JSON.stringify(state), 1),
      memberLine('questions', object(members, 1), 1),
    ],
    0,
  );
}

function questionText({ type, instructions, ...criteria }: QuestionDraft): string {
  const text = criteriaText(type, criteria);
  const members = [
    memberLine('type', JSON.stringify(type), 3),
    memberLine('instructions', JSON.stringify(instructions), 3),
  ];
  if (text !== undefined) members.push(memberLine('criteria', text, 3));
  return object(members, 2);
}

type Criteria = Pick<QuestionDraft, 'options' | 'levels' | 'yes' | 'no'>;

function criteriaText(type: QuestionType, { options, levels, yes, no }: Criteria): string | undefined {
  if (type === 'score') return list(levels);
  if (type === 'choice') {
    if (options.every(({ description }) => description === '')) return list(options.map(({ name }) => name));
    return object(
      options.map(({ name, description }) => memberLine(name, JSON.stringify(description), 4)),
      3,
    );
  }
  const sides = [
    yes !== '' && memberLine('true', JSON.stringify(yes), 4),
    no !== '' && memberLine('false', JSON.stringify(no), 4),
  ];
  const given = sides.filter((side) => side !== false);
  return given.length === 0 ? undefined : object(given, 3);
}

function memberLine(name: string, value: string, depth: number): string {
  return `${INDENT.repeat(depth)}${JSON.stringify(name)}: ${value}`;
}

function object(members: readonly string[], depth: number): string {
  return members.length === 0 ? '{}' : `{\n${members.join(',\n')}\n${INDENT.repeat(depth)}}`;
}

function list(texts: readonly string[]): string {
  return `[${texts.map((text) => JSON.stringify(text)).join(', ')}]`;
}

/** The error that a text holds something that a form cannot show. Its message is the end of a sentence. */
class NotShowable extends Error {}

/** Returns the request in `text`, or the reason why a form cannot show it, as the end of a sentence. */
export function readDraft(text: string): RequestDraft | string {
  try {
    const errors: ParseError[] = [];
    const root = parseTree(text, errors, { disallowComments: true });
    if (root === undefined || errors.length > 0) return 'it is not valid JSON';
    return draft(text, root);
  } catch (error) {
    if (error instanceof NotShowable) return error.message;
    // The parser recurses on every level of nesting.
    if (error instanceof RangeError) return 'it is nested too deep';
    throw error;
  }
}

function draft(text: string, root: Node): RequestDraft {
  const fields = knownMembers(root, 'the request', ['state', 'questions']);
  const state = fields.get('state');
  const isJson = state !== undefined && state.type !== 'string';
  const raw = state === undefined ? '' : text.slice(state.offset, state.offset + state.length);
  const questions = fields.get('questions');
  return {
    isJson,
    state: isJson ? raw : textOf(state, 'the state'),
    questions: questions === undefined ? [] : members(questions, 'questions').map(([id, node]) => question(id, node)),
  };
}

function question(id: string, node: Node): QuestionDraft {
  const fields = knownMembers(node, id, ['type', 'instructions', 'criteria']);
  const type = QUESTION_TYPES.find((known) => known === fields.get('type')?.value);
  if (type === undefined) throw new NotShowable(`${id} has no type that the form knows`);
  const instructions = textOf(fields.get('instructions'), `the instructions of ${id}`);
  return { id, type, instructions, ...NO_CRITERIA, ...criteria(id, type, fields.get('criteria')) };
}

/** The criteria of a question that has none of its own yet. */
export const NO_CRITERIA: Criteria = { options: [], levels: [], yes: '', no: '' };

function criteria(id: string, type: QuestionType, node: Node | undefined): Partial<Criteria> {
  if (node === undefined || node.type === 'null') return {};
  const what = `the criteria of ${id}`;
  if (type === 'score') return { levels: items(node, what).map((item) => requiredText(item, what)) };
  if (type === 'noul') {
    const sides = knownMembers(node, what, ['true', 'false']);
    return { yes: textOf(sides.get('true'), what), no: textOf(sides.get('false'), what) };
  }
  if (node.type === 'array') {
    return { options: items(node, what).map((item) => ({ name: requiredText(item, what), description: '' })) };
  }
  return { options: members(node, what).map(([name, value]) => ({ name, description: textOf(value, what) })) };
}

function members(node: Node, what: string): [string, Node][] {
  if (node.type !== 'object') throw new NotShowable(`${what} is not an object`);
  return (node.children ?? []).map(({ children }) => {
    const [name, value] = children ?? [];
    if (name === undefined || value === undefined) throw new NotShowable('it is not valid JSON');
    return [String(name.value), value];
  });
}

/** Returns the members of an object; throws if it has a member that is not one of `names`, or one of them twice. */
function knownMembers(node: Node, what: string, names: readonly string[]): ReadonlyMap<string, Node> {
  const found = members(node, what);
  const other = found.find(([name], index) => !names.includes(name) || found.findIndex(([n]) => n === name) !== index);
  if (other) throw new NotShowable(`${what} has a field that the form does not: ${other[0]}`);
  return new Map(found);
}

function items(node: Node, what: string): readonly Node[] {
  if (node.type !== 'array') throw new NotShowable(`${what} are not a list`);
  return node.children ?? [];
}

function textOf(node: Node | undefined, what: string): string {
  return node === undefined || node.type === 'null' ? '' : requiredText(node, what);
}

function requiredText(node: Node, what: string): string {
  if (node.type !== 'string') throw new NotShowable(`${what} is not plain text`);
  return String(node.value);
}
