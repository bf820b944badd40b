/** Writes the parts of pages that come from a measurement. */
import { readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import process from 'node:process';
import { cpuFeatures } from '../dist/src/doctor/cpu.js';

/** Puts `text` between `<!-- name -->` and `<!-- end of name -->` of the page in `file`. */
export function writeSection(file, name, text) {
  const [start, end] = [`<!-- ${name} -->`, `<!-- end of ${name} -->`];
  const page = readFileSync(file, 'utf8');
  const [from, to] = [page.indexOf(start), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${file} has no ${start}`);
  writeFileSync(file, `${page.slice(0, from + start.length)}\n\n${text.trim()}\n\n${page.slice(to)}`);
}

/** Returns a Markdown table, whose first row holds the names of the columns. */
export function table([names, ...rows]) {
  const line = (cells) => `| ${cells.join(' | ')} |`;
  return [line(names), line(names.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Returns a ratio as `spread` gives it: the median, with the least and the greatest. */
export function ratioText({ min, median, max }) {
  return `**${median.toFixed(2)}** (${min.toFixed(2)} to ${max.toFixed(2)})`;
}

/** Returns the names of the processor's features that decide the speed of 8-bit models, where they are known. */
function processorFeatures() {
  try {
    return cpuFeatures(readFileSync('/proc/cpuinfo', 'utf8'), process.arch);
  } catch {
    return undefined;
  }
}

/** Returns the date and the machine of a measurement, in one line. */
export function circumstances() {
  const [{ model }] = os.cpus();
  const features = [...(processorFeatures() ?? [])].join(', ');
  const date = new Date().toISOString().slice(0, 10);
  const load = os.loadavg()[0].toFixed(2);
  const machine = `${model}${features && ` with ${features}`}, ${os.cpus().length} cores`;
  return `${date}, ${machine}, Node ${process.versions.node}; load average at the end ${load}.`;
}
