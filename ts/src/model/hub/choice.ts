/** The files of a repository that a model needs: most repositories have more, and often several graphs. */
import type { KnownFamily } from '../family.ts';
import { SourceError } from '../source-error.ts';
import { namedGraphs, secondGraphs } from '../two-graphs.ts';
import type { HubFile } from './listing.ts';

export interface Choice {
  /** The files that the model needs. */
  readonly files: readonly HubFile[];
  /** The path of the graph among them. */
  readonly graph: string;
  /** The paths of the graphs that are left out. */
  readonly others: readonly string[];
}

interface Wish {
  /** The setting `device`. */
  readonly device: string;
  /** The setting `model_file`; empty takes the graph that suits the device. */
  readonly graph: string;
  /** The members of the model's `config.json`. */
  readonly config: Readonly<Record<string, unknown>>;
  /** The family of the model, where it is known; else a folder with a `config.json` is expected. */
  readonly family?: Pick<KnownFamily, 'file' | 'needs'> | undefined;
}

/** The files that a model of any family may have. */
const USUAL = ['config.json', 'golden.jsonl'];
/** The family of a model that is not known. */
const UNKNOWN: Pick<KnownFamily, 'file' | 'needs'> = {
  file: 'config.json',
  needs: { tokenizer: 'tokenizer.json', settings: [] },
};
/** The folder that has the graphs where the model's own folder has none. */
const GRAPHS = 'onnx/';

/** The kinds of numbers in a graph, by the names that exporting tools give its file. */
type Numbers = 'fp32' | 'fp16' | '8 bits' | '4 bits';

const NAMES: readonly (readonly [RegExp, Numbers])[] = [
  [/(^|[-_.])(q4|q4f16|bnb4|u?int4|4bit)([-_.]|$)/i, '4 bits'],
  [/(^|[-_.])(q8|q8f16|q?u?int8|quantized|quint8|8bit)([-_.]|$)/i, '8 bits'],
  [/(^|[-_.])(fp16|float16|f16|half|o4)([-_.]|$)/i, 'fp16'],
];

/**
 * The numbers that suit a device, the best first. A processor computes fp16 more slowly than fp32, and a graph of 8
 * bits gives other answers than the one it was made from: it is taken by its name, or where there is no other.
 */
const SUITS: Readonly<Record<'processor' | 'accelerator', readonly Numbers[]>> = {
  processor: ['fp32', '8 bits', 'fp16', '4 bits'],
  accelerator: ['fp16', 'fp32', '8 bits', '4 bits'],
};

/** Returns the kind of device that a graph is chosen for. `auto` may end on the processor, so it counts as that. */
export function deviceKind(device: string): 'processor' | 'accelerator' {
  return device === 'auto' || device === 'cpu' ? 'processor' : 'accelerator';
}

/**
 * Returns the files that a model needs.
 *
 * @throws SourceError when a file is missing, or it is not clear which graph is wanted.
 */
export function chooseFiles(files: readonly HubFile[], wish: Wish): Choice {
  const { file, needs } = wish.family ?? UNKNOWN;
  const graphs = graphsIn(files, needs.graph);
  const graph = graphFor(graphs, files, needs.graph === undefined ? wish : { ...wish, graph: needs.graph });
  const both = [graph.path, ...secondGraphs(graph.path), ...namedGraphs(wish.config)];
  const wanted = new Set([...USUAL, file, needs.tokenizer, ...needs.settings, ...namedFiles(wish.config), ...both]);
  const needed = files.filter(({ path }) => wanted.has(path) || both.some((of) => isWeights(path, of)));
  for (const path of [file, needs.tokenizer]) {
    if (!needed.some((file) => file.path === path)) throw new SourceError(`there is no ${path} in it`);
  }
  const others = graphs.map(({ path }) => path).filter((path) => !both.includes(path));
  return { files: needed, graph: graph.path, others };
}

/**
 * Returns the graphs of a repository, among them the one that its settings name, wherever it is. A graph that belongs to
 * an encoder is not one that a model can begin with.
 */
function graphsIn(files: readonly HubFile[], named: string | undefined): HubFile[] {
  const seconds = new Set(files.flatMap(({ path }) => secondGraphs(path)));
  const isUsual = (path: string) => /^(onnx\/)?[^/]+\.onnx$/.test(path) && !seconds.has(path);
  return files.filter(({ path }) => path === named || isUsual(path));
}

function graphFor(
  graphs: readonly HubFile[],
  files: readonly HubFile[],
  { device, graph, config: { sha256 } }: Wish,
): HubFile {
  const list = (found: readonly HubFile[]) => found.map(({ path }) => path).join(', ');
  if (graphs.length === 0) {
    const weights = files.some(({ path }) => /\.(safetensors|bin|pt)$/.test(path));
    throw new SourceError(`there is no .onnx file in it${weights ? ': export the model first' : ''}`);
  }
  if (graph !== '') {
    const named = graphs.find(({ path }) => path === graph);
    if (named === undefined) throw new SourceError(`model_file: there is no ${graph}, but ${list(graphs)}`);
    return named;
  }
  // The engine looks into the folder for graphs only where the model's own folder has none.
  const own = graphs.filter(({ path }) => !path.startsWith(GRAPHS));
  const candidates = own.length > 0 ? own : graphs;
  const meant = candidates.find(({ blob }) => blob === String(sha256).toLowerCase());
  const found = meant === undefined ? suitable(candidates, device) : [meant];
  const [only] = found;
  if (only !== undefined && found.length === 1) return only;
  throw new SourceError(`name one of its graphs by model_file: ${list(found)}`);
}

/** Returns the graphs that suit a device equally well: one, unless their names say nothing about the difference. */
function suitable(graphs: readonly HubFile[], device: string): HubFile[] {
  for (const numbers of SUITS[deviceKind(device)]) {
    const found = graphs.filter(({ path }) => numbersOf(path) === numbers);
    const usual = found.find(({ path }) => /^(onnx\/)?model(_(fp16|quantized|int8|q8|q4))?\.onnx$/.test(path));
    if (usual !== undefined) return [usual];
    if (found.length > 0) return found;
  }
  return [];
}

function numbersOf(path: string): Numbers {
  const name = path.slice(path.lastIndexOf('/') + 1).replace(/\.onnx$/, '');
  return NAMES.find(([pattern]) => pattern.test(name))?.[1] ?? 'fp32';
}

/** Returns the files that `config.json` names with their digests. */
function namedFiles({ files }: Wish['config']): string[] {
  return typeof files === 'object' && files !== null ? Object.keys(files) : [];
}

/** Whether a file holds weights of a graph: its name begins with that of the graph. */
function isWeights(path: string, graph: string): boolean {
  return (
    path.startsWith(`${graph}_data`) || path.startsWith(`${graph}.data`) || path === graph.replace(/onnx$/, 'data')
  );
}
