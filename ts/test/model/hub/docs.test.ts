import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { createCommand } from '../../../src/cli.ts';
import { summaryText } from '../../../src/commands/model-summary.ts';
import { REPOSITORY } from '../../addon/model-folders.ts';
import { docBlocks } from '../../doc-blocks.ts';

const PAGE = readFileSync(join(REPOSITORY, 'docs', 'hub-models.md'), 'utf8');

/** Returns the words of a command line, with quotes taken away. */
const words = (line: string) => (line.match(/'[^']*'|\S+/g) ?? []).map((word) => word.replaceAll("'", ''));

suite('the page on models from a hub', () => {
  test('has commands that there are', async () => {
    const called: string[] = [];
    const noted = (name: string) => async () => void called.push(name);
    const command = createCommand({
      ...{ serve: noted('serve'), ask: noted('ask'), batch: noted('batch'), tune: noted('tune'), gate: noted('gate') },
      ...{ doctor: noted('doctor'), config: noted('config'), addMissing: noted('add'), health: noted('health') },
      ...{ modelCheck: noted('check'), modelManifest: noted('manifest'), modelPull: noted('pull') },
      ...{ modelList: noted('list'), modelRm: noted('rm'), mcp: noted('mcp') },
      ...{ bench: noted('bench'), completion: noted('completion') },
    });
    const lines = docBlocks('hub-models.md').filter(({ language }) => language === 'sh');
    for (const line of lines.flatMap(({ text }) => text.trimEnd().split('\n'))) {
      const [npx, program, ...args] = words(line);
      assert.deepEqual([npx, program], ['npx', '@svc/server']);
      await command.parseAsync(args, { from: 'user' });
    }
    assert.deepEqual(called, ['serve', 'pull', 'ask', 'list', 'rm']);
  });

  test('shows what a pull prints', () => {
    const [shown] = docBlocks('hub-models.md').filter(({ language }) => language === '');
    const value = (title: string) => new RegExp(`^${title.padEnd(8)} (.*)$`, 'm').exec(shown?.text ?? '')?.[1] ?? '';
    const printed = summaryText(
      {
        ...{ source: value('model'), folder: value('folder'), snapshot: value('files'), sha256: value('sha256') },
        ...{ bytes: 1.2 * 2 ** 30, family: { name: 'pair', file: 'config.json' }, licence: 'apache-2.0' },
        ...{ version: '', usedMs: 0, isInUse: false },
      },
      ['onnx/model_fp16.onnx', 'onnx/model_int8.onnx'],
    );
    assert.equal(printed, shown?.text);
  });

  test('lists messages that there are', () => {
    const folder = join(REPOSITORY, 'ts', 'src', 'model', 'hub');
    const others = [join('..', 'cache.ts'), join('..', '..', 'files', 'system-error.ts')];
    const code = [...readdirSync(folder), ...others].map((name) => readFileSync(join(folder, name), 'utf8')).join('\n');
    const table = PAGE.slice(PAGE.indexOf('## When the hub says no'));
    const messages = [...table.matchAll(/^\| (`.*`) \|/gm)].flatMap(([, cell = '']) => cell.match(/`[^`]+`/g) ?? []);
    assert.ok(messages.length >= 8);
    for (const message of messages) {
      // Parts of a message that are put together from others are separated by what differs.
      const parts = message
        .replaceAll('`', '')
        .split(/…|, or it is |\(status 429\)|502$|\(ENOSPC: |\)(?=;)|sha256|\bs$/);
      for (const part of parts) assert.ok(code.includes(part.trim()), part);
    }
  });

  test('names every variable of the hub that is read', () => {
    const code = readFileSync(join(REPOSITORY, 'ts', 'src', 'settings', 'hub.ts'), 'utf8');
    const names = new Set(code.match(/\bHF_[A-Z_]+\b/g));
    assert.deepEqual(names, new Set(PAGE.match(/\bHF_[A-Z_]+\b/g)));
  });
});
