import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { suite, type TestContext, test } from 'node:test';
import { brotliCompressSync, gunzipSync, gzipSync } from 'node:zlib';
import { filesIn } from '../../src/model/file-digest.ts';
import type { ArchiveFormat } from '../../src/model/location.ts';
import { modelFolderIn, unpack } from '../../src/model/unpack.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { gzipFirstByteAlone, tarGz, tarOf, zipOf } from './archives.ts';

/** Unpacks an archive and returns the folder; it lies in a folder that holds nothing else. */
async function unpackBytes(
  t: TestContext,
  bytes: Buffer,
  { format = 'tar', maxBytes = 2 ** 30 } = {},
): Promise<string> {
  const folder = temporaryFolder(t);
  const [archive, target] = [join(folder, 'archive'), join(folder, 'target')];
  writeFileSync(archive, bytes);
  mkdirSync(target);
  const { signal } = new AbortController();
  try {
    await unpack(archive, target, { format: format as ArchiveFormat, maxBytes, signal });
  } finally {
    assert.deepEqual(readdirSync(folder).toSorted(), ['archive', 'target']);
  }
  return target;
}

const paths = async (folder: string) => (await filesIn(folder)).map(({ path }) => path);
const MANY = Buffer.alloc(3 * 2 ** 20, 'abc');

suite('unpacking', () => {
  for (const [format, bytes] of [
    [
      'tar',
      tarGz([
        { path: 'm/', type: 'Directory' },
        { path: './m/config.json', content: '{}' },
        { path: 'm/onnx/model.onnx', content: MANY },
        { path: 'm/empty' },
      ]),
    ],
    [
      'zip',
      zipOf([
        { name: 'm/', mode: 0o040755 },
        { name: 'm/config.json', content: '{}' },
        { name: 'm/onnx/model.onnx', content: MANY },
        { name: 'm/empty' },
      ]),
    ],
  ] as const) {
    test(`writes the files of a ${format} archive and finds the model folder in it`, async (t) => {
      const folder = await unpackBytes(t, bytes, { format });
      assert.deepEqual(await paths(folder), ['m/config.json', 'm/empty', 'm/onnx/model.onnx']);
      assert.ok(readFileSync(join(folder, 'm', 'onnx', 'model.onnx')).equals(MANY));
      assert.equal(basename(await modelFolderIn(folder)), 'm');
    });
  }

  test('takes an archive without a folder around the files', async (t) => {
    const folder = await unpackBytes(t, tarOf({ 'config.json': '{}', 'tokenizer.json': '{}' }));
    assert.equal(await modelFolderIn(folder), folder);
  });

  for (const file of ['rl_agent_config.json', 'decision_config.json', 'noulxp.json', 'tokenizer.json']) {
    test(`takes a model that is known by its ${file}`, async (t) => {
      const folder = await unpackBytes(t, tarOf({ [`m/${file}`]: '{}', 'm/model.onnx': 'x' }));
      assert.equal(basename(await modelFolderIn(folder)), 'm');
    });
  }

  test('passes over what macOS adds', async (t) => {
    const files = { 'm/config.json': '{}', 'm/._config.json': 'x', '._m': 'x', '__MACOSX/m/a': 'x' };
    const zip = zipOf(Object.entries(files).map(([name, content]) => ({ name, content })));
    for (const [format, bytes] of [
      ['tar', tarOf(files)],
      ['zip', zip],
    ] as const) {
      assert.deepEqual(await paths(await unpackBytes(t, bytes, { format })), ['m/config.json']);
    }
  });

  for (const [what, files] of [
    ['no config.json', { 'm/other.json': '{}' }],
    ['two folders', { 'a/config.json': '{}', 'b/config.json': '{}' }],
    ['nothing', { 'm/._a': '' }],
  ] as const) {
    test(`finds no model folder where there is ${what}`, async (t) => {
      await assert.rejects(modelFolderIn(await unpackBytes(t, tarOf(files))), {
        message: /^it has none of the files that a model is known by \(config\.json, /,
      });
    });
  }

  for (const type of ['SymbolicLink', 'Link', 'CharacterDevice', 'BlockDevice', 'FIFO'] as const) {
    test(`refuses a tar archive with a ${type}`, async (t) => {
      const linkpath = type.endsWith('Link') ? { linkpath: '/etc/passwd' } : {};
      const bytes = tarGz([
        { path: 'config.json', content: '{}' },
        { path: 'x', type, ...linkpath },
      ]);
      await assert.rejects(unpackBytes(t, bytes), {
        name: 'SourceError',
        message: new RegExp(`"x" is of the type ${type}`),
      });
    });
  }

  test('refuses a zip archive with a link', async (t) => {
    const bytes = zipOf([{ name: 'x', content: '/etc/passwd', mode: 0o120777 }]);
    await assert.rejects(unpackBytes(t, bytes, { format: 'zip' }), {
      name: 'SourceError',
      message: /only files and folders/,
    });
  });

  test('refuses a tar archive with an entry of a type that it does not know', async (t) => {
    const bytes = tarGz([
      { path: 'config.json', content: '{}' },
      { path: 'x', typeCode: 'Z', content: 'y' },
    ]);
    await assert.rejects(unpackBytes(t, bytes), { name: 'SourceError' });
  });

  for (const name of ['../x', '/x', 'a/../../x', 'C:/x', 'a\\..\\..\\x']) {
    test(`refuses a name that leads out: ${name}`, async (t) => {
      await assert.rejects(unpackBytes(t, tarGz([{ path: name, content: 'y' }])), { name: 'SourceError' });
      await assert.rejects(unpackBytes(t, zipOf([{ name, content: 'y' }]), { format: 'zip' }), { name: 'SourceError' });
    });
  }

  test('refuses two files that are one where upper and lower case are the same', async (t) => {
    const twice = ['model.onnx', 'Model.onnx'];
    await assert.rejects(unpackBytes(t, tarGz(twice.map((path) => ({ path, content: path })))), /twice/);
    await assert.rejects(unpackBytes(t, zipOf(twice.map((name) => ({ name }))), { format: 'zip' }), /twice/);
  });

  test('refuses a bomb: by its ratio, by its bytes, by its number of files', async (t) => {
    const zeros = Buffer.alloc(32 * 2 ** 20);
    const bombs = { tar: tarOf({ a: zeros }), zip: zipOf([{ name: 'a', content: zeros }]) };
    const crowd = Array.from({ length: 1001 }, (_, index) => ({ path: `f${index}`, name: `f${index}` }));
    const crowds = { tar: tarGz(crowd), zip: zipOf(crowd) };
    for (const format of ['tar', 'zip'] as const) {
      await assert.rejects(unpackBytes(t, bombs[format], { format }), {
        message: 'unpacked more than 200 times its size',
      });
      await assert.rejects(unpackBytes(t, bombs[format], { format, maxBytes: 2 ** 20 }), {
        message: /model_max_bytes/,
      });
      await assert.rejects(unpackBytes(t, crowds[format], { format }), { message: 'more than 1000 files' });
    }
  });

  test('takes what is 150 times as long as its archive, and refuses what is 300 times as long', async (t) => {
    const bytes = 20 * 2 ** 20;
    for (const [ratio, isTaken] of [
      [150, true],
      [300, false],
    ] as const) {
      // Zeros are compressed to a thousandth of their length; noise is not compressed at all.
      const content = Buffer.alloc(bytes);
      randomBytes(Math.round(bytes / ratio - bytes / 1024)).copy(content);
      for (const [format, archive] of [
        ['tar', tarOf({ 'config.json': content })],
        ['zip', zipOf([{ name: 'config.json', content }])],
      ] as const) {
        const found = bytes / archive.length;
        assert.ok(found > 0.9 * ratio && found < 1.1 * ratio, `${found}`);
        const unpacked = unpackBytes(t, archive, { format });
        if (isTaken) assert.deepEqual(await paths(await unpacked), ['config.json']);
        else await assert.rejects(unpacked, { message: 'unpacked more than 200 times its size' });
      }
    }
  });

  test('counts what macOS adds: its files, and their bytes', async (t) => {
    const zeros = Buffer.alloc(32 * 2 ** 20);
    const bombs = { tar: tarOf({ '._a': zeros }), zip: zipOf([{ name: '__MACOSX/a', content: zeros }]) };
    const crowd = Array.from({ length: 1001 }, (_, index) => ({ path: `._${index}`, name: `._${index}` }));
    const crowds = { tar: tarGz(crowd), zip: zipOf(crowd) };
    for (const format of ['tar', 'zip'] as const) {
      await assert.rejects(unpackBytes(t, bombs[format], { format }), {
        message: 'unpacked more than 200 times its size',
      });
      await assert.rejects(unpackBytes(t, crowds[format], { format }), { message: 'more than 1000 files' });
    }
  });

  test('counts headers without files', async (t) => {
    const content = Buffer.alloc(900_000, 'x');
    content.write('900000 comment=');
    content.write('\n', content.length - 1);
    const headers = Array.from({ length: 40 }, () => ({ path: 'g', type: 'GlobalExtendedHeader', content }) as const);
    await assert.rejects(unpackBytes(t, tarGz([...headers, { path: 'config.json', content: '{}' }])), {
      message: 'unpacked more than 200 times its size',
    });
  });

  test('refuses what is packed twice, which would be counted once', async (t) => {
    const tar = tarOf({ 'config.json': '{}' });
    await assert.rejects(unpackBytes(t, gzipSync(tar)), { message: 'it is packed twice' });
    await assert.rejects(unpackBytes(t, gzipSync(brotliCompressSync(gunzipSync(tar)))), { name: 'SourceError' });
  });

  test('refuses what is packed twice, also when its first byte comes alone', async (t) => {
    const tar = tarOf({ 'config.json': '{}' });
    const twice = gzipFirstByteAlone(tar, 2 ** 16);
    assert.ok(gunzipSync(twice).equals(tar));
    await assert.rejects(unpackBytes(t, twice), { message: 'it is packed twice' });
  });

  test('refuses an archive that is cut off, anywhere', async (t) => {
    const [tar, zip] = [tarOf({ 'config.json': '{}', model: MANY }), zipOf([{ name: 'config.json', content: MANY }])];
    for (const part of [0, 0.2, 0.5, 0.9, 0.999]) {
      await assert.rejects(unpackBytes(t, tar.subarray(0, tar.length * part)), { name: 'SourceError' }, `${part}`);
      await assert.rejects(unpackBytes(t, zip.subarray(0, zip.length * part), { format: 'zip' }), {
        name: 'SourceError',
      });
    }
  });

  test('refuses a tar archive that ends within a file although the compression does not', async (t) => {
    const bytes = tarGz([{ path: 'config.json', size: 100_000, content: 'short' }]);
    await assert.rejects(unpackBytes(t, bytes), { name: 'SourceError' });
  });

  test('refuses a zip archive that lies about a length or has a damaged file', async (t) => {
    for (const lie of [{ claimedBytes: 1 }, { claimedBytes: 2 ** 30 }, { claimedCrc: 1 }]) {
      const bytes = zipOf([{ name: 'config.json', content: 'some text', ...lie }]);
      await assert.rejects(unpackBytes(t, bytes, { format: 'zip' }), { name: 'SourceError' }, JSON.stringify(lie));
    }
  });

  test('refuses what is no archive', async (t) => {
    for (const format of ['tar', 'zip']) {
      await assert.rejects(unpackBytes(t, Buffer.from('<html>not found</html>'), { format }), {
        name: 'SourceError',
        message: /^it cannot be unpacked: ./,
      });
    }
  });

  test('stops when it is told to', async (t) => {
    const folder = temporaryFolder(t);
    writeFileSync(join(folder, 'archive'), tarOf({ 'config.json': MANY }));
    const options = { format: 'tar', maxBytes: 2 ** 30, signal: AbortSignal.abort(new Error('enough')) } as const;
    await assert.rejects(unpack(join(folder, 'archive'), join(folder, 'target'), options), { message: 'enough' });
  });
});
