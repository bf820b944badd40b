/** The graphs of models whose encoder has a graph of its own. */

/** Returns the paths that the second graph of an encoder may have; none for another file. */
export function secondGraphs(path: string): string[] {
  const [, folder, ending] = /^(.*\/)?encoder([^/]*\.onnx)$/.exec(path) ?? [];
  return ending === undefined ? [] : ['head', 'scorer'].map((name) => `${folder ?? ''}${name}${ending}`);
}

/** Returns the graphs that a `config.json` names, the encoder first; none where it names none. */
export function namedGraphs({ graphs }: Readonly<Record<string, unknown>>): string[] {
  if (typeof graphs !== 'object' || graphs === null) return [];
  const { encoder, head, scorer } = { encoder: undefined, head: undefined, scorer: undefined, ...graphs };
  return [encoder, head, scorer].filter((path) => typeof path === 'string');
}
