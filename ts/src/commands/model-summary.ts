/** The descriptions of kept models: of one in lines, of many in a table, and as JSON. */
import { formatBytes, NOTHING } from '../dashboard/format.ts';
import { printable } from '../log/printable.ts';
import type { ModelSummary } from '../model/kept-models.ts';

const SHORT_REVISION = 12;

/** Returns the lines about one model. */
export function summaryText(model: ModelSummary, otherGraphs: readonly string[] = []): string {
  const { source, folder, snapshot, bytes, family, licence, sha256 } = model;
  const rows: (readonly [string, string | undefined])[] = [
    ['model', source],
    ['folder', folder],
    ['files', snapshot],
    ['size', formatBytes(bytes)],
    ['family', family && `${family.name}, by ${family.file}`],
    ['licence', licence ?? 'the card names none'],
    ['graphs', otherGraphs.length > 0 ? `also ${otherGraphs.join(', ')}; model_file takes one of them` : undefined],
    ['sha256', sha256],
  ];
  return rows.flatMap(([title, text]) => (text ? [`${title.padEnd(8)} ${printable(text)}\n`] : [])).join('');
}

/** Returns a table of models, with the sum of their sizes below it. */
export function summaryTable(models: readonly ModelSummary[]): string {
  const heads = ['model', 'revision', 'family', 'size', 'licence', 'folder'];
  const rows = [heads, ...models.map((model) => cells(model).map(printable))];
  const widths = heads.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  // A model that has several names lies on the disk once.
  const kept = new Map(models.map(({ sha256, bytes }) => [sha256, bytes]));
  const bytes = [...kept.values()].reduce((sum, size) => sum + size, 0);
  return [...lines, `${kept.size} kept, ${formatBytes(bytes)}`, ''].join('\n');
}

function cells({ source, revision, version, family, bytes, licence, folder }: ModelSummary): string[] {
  const short = revision?.slice(0, SHORT_REVISION) ?? version;
  return [source ?? NOTHING, short || NOTHING, family?.name ?? NOTHING, formatBytes(bytes), licence ?? NOTHING, folder];
}

/** Returns a model in the form of the commands' JSON. */
export function summaryJson({ usedMs, isInUse, snapshot, ...model }: ModelSummary): object {
  const files = snapshot === undefined ? {} : { files: snapshot };
  return { ...model, ...files, used_at: new Date(usedMs).toISOString(), in_use: isInUse };
}
