import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, suite, type TestContext, test } from 'node:test';
import { CreateBucketCommand, DeleteObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { filesIn } from '../../src/model/file-digest.ts';
import { manifestText } from '../../src/model/manifest.ts';
import { copyOfFixture, fixture, REPOSITORY } from '../addon/model-folders.ts';
import { tarOf } from '../model/archives.ts';
import { assertAnswers, health, reload } from '../model/live-model.ts';
import { LiveServer } from '../real/live-server.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const BUCKET = 'models';
const CREDENTIALS = { accessKeyId: 'test-key-id', secretAccessKey: 'test-secret-key' };

/** Returns an S3 server: a running one if `S3_TEST_URL` names it, otherwise that of `s3_server.py`. */
async function startS3(): Promise<{ readonly url: string; stop(): void }> {
  const { S3_TEST_URL: running, SYSTEM_TEST_PYTHON: python = 'python3' } = process.env;
  if (running) return { url: running, stop() {} };
  const script = join(REPOSITORY, 'ts', 'test', 'system', 's3_server.py');
  const child = spawn(python, ['-u', script], { stdio: ['pipe', 'pipe', 'inherit'] });
  const [line] = await once(child.stdout, 'data');
  return { url: String(line).trim(), stop: () => child.kill() };
}

suite('a model in a bucket', () => {
  let s3: Awaited<ReturnType<typeof startS3>>;
  let client: S3Client;

  before(async () => {
    s3 = await startS3();
    client = new S3Client({ endpoint: s3.url, region: 'us-east-1', forcePathStyle: true, credentials: CREDENTIALS });
    await client.send(new CreateBucketCommand({ Bucket: BUCKET }));
  });
  after(() => s3.stop());

  const put = (key: string, body: Buffer | string) =>
    client.send(new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: body }));

  async function upload(prefix: string, folder: string): Promise<void> {
    for (const { path } of await filesIn(folder)) await put(`${prefix}/${path}`, readFileSync(join(folder, path)));
  }

  function start(t: TestContext, key: string, { data = temporaryFolder(t), env = {}, settings = {} } = {}) {
    const s3Settings = { s3_endpoint: s3.url, s3_region: 'us-east-1', s3_path_style: true };
    return LiveServer.start(t, {
      settings: { model: `s3://${BUCKET}/${key}`, allow_no_password: true, ...s3Settings, ...settings },
      env: {
        SVC_DATA: data,
        AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
        AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
        ...env,
      },
    });
  }

  test('is taken by its prefix, and the newer one when an object has changed', async (t) => {
    await upload('by-prefix', fixture('marker'));
    const live = await start(t, 'by-prefix');
    const { source, fallback, version, remote_version, dir } = await health(live);
    assert.deepEqual([source, fallback, remote_version], [`s3://${BUCKET}/by-prefix`, false, version]);
    await assertAnswers(live, 'marker');
    assert.equal((await reload(live)).status, 200);
    assert.equal((await health(live)).dir, dir);
    const newer = copyOfFixture(t, 'marker');
    appendFileSync(join(newer, 'config.json'), '\n');
    await upload('by-prefix', newer);
    assert.equal((await reload(live)).status, 200);
    assert.notEqual((await health(live)).dir, dir);
    await assertAnswers(live, 'marker');
  });

  test('is taken by its manifest, and what does not match that is not', async (t) => {
    await upload('by-manifest', fixture('shared-state'));
    await put('by-manifest/manifest.json', await manifestText(fixture('shared-state')));
    await put('by-manifest/not-of-the-model', 'x');
    const live = await start(t, 'by-manifest/');
    await assertAnswers(live, 'shared-state');
    await put('by-manifest/model.onnx', 'another');
    await put('by-manifest/manifest.json', `${await manifestText(fixture('shared-state'))} `);
    const other = await start(t, 'by-manifest');
    assert.equal((await health(other)).fallback, true);
    assert.equal((await reload(live)).status, 500);
    await assertAnswers(live, 'shared-state');
  });

  test('is taken as an archive and as a manifest of its own name', async (t) => {
    const files = (await filesIn(fixture('marker'))).map(({ path }) => [
      path,
      readFileSync(join(fixture('marker'), path)),
    ]);
    await put('packed/marker.tar.gz', tarOf(Object.fromEntries(files)));
    await assertAnswers(await start(t, 'packed/marker.tar.gz'), 'marker');
    await upload('named', fixture('marker'));
    await put('named/v1.json', await manifestText(fixture('marker')));
    await assertAnswers(await start(t, 'named/v1.json'), 'marker');
  });

  test('is replaced by the embedded one when it is not there, and by the last good one when the bucket is away', async (t) => {
    const missing = await start(t, 'nothing');
    const { fallback, offline } = await health(missing);
    assert.deepEqual([fallback, offline], [true, true]);
    await missing.process.logged(
      /s3:\/\/models\/nothing: it has none of the files that a model is known by .*; the embedded model answers/,
    );
    const data = temporaryFolder(t);
    await upload('away', fixture('marker'));
    await start(t, 'away', { data });
    for (const file of ['config.json', 'tokenizer.json']) {
      await client.send(new DeleteObjectCommand({ Bucket: BUCKET, Key: `away/${file}` }));
    }
    const live = await start(t, 'away', { data });
    await live.process.logged(/s3:\/\/models\/away: it has none of the files that a model is known by/);
    const record = await health(live);
    assert.deepEqual([record.fallback, record.source, record.offline], [false, `s3://${BUCKET}/away`, true]);
    await assertAnswers(live, 'marker');
  });

  test('and credentials that are missing are told, not sent elsewhere', async (t) => {
    const env = {
      AWS_ACCESS_KEY_ID: '',
      AWS_SECRET_ACCESS_KEY: '',
      AWS_EC2_METADATA_DISABLED: 'true',
      HOME: temporaryFolder(t),
    };
    const live = await start(t, 'by-prefix', { env });
    await live.process.logged(/Could not load credentials from any providers/);
    assert.equal((await health(live)).fallback, true);
  });
});
