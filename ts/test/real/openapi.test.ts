import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { Validator } from '@seriousme/openapi-schema-validator';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { openApiDocument } from '../../src/openapi/document.ts';
import { LiveServer, type Received } from './live-server.ts';

const KEY = 'an-api-key-of-the-test';
const PASSWORD = 'a-password-of-the-test';

interface Content {
  readonly schema: object;
  readonly example?: unknown;
  readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
}

type Contents = Readonly<Record<string, Content>>;

interface Operation {
  readonly security: readonly Readonly<Record<string, unknown>>[];
  readonly requestBody?: { readonly content: Contents };
  readonly responses: Readonly<Record<string, { readonly content: Contents; readonly headers?: object }>>;
}

interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, { readonly get?: Operation; readonly post?: Operation }>>;
}

const DOCUMENT = JSON.parse(JSON.stringify(openApiDocument())) as Document;

const OPERATIONS = Object.entries(DOCUMENT.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]: [string, Operation]) => ({
    path: path.replace('{id}', 'svc'),
    method,
    operation,
  })),
);

const ajv = new Ajv2020({ strict: false });
formats.default(ajv);
ajv.addSchema({ ...DOCUMENT, $id: 'https://api.example/' });

/** Fails unless `value` matches a schema of the document. */
function assertShape(value: unknown, schema: object, what: string): void {
  const absolute = JSON.parse(JSON.stringify(schema).replaceAll('"$ref":"#', '"$ref":"https://api.example/#'));
  const check = ajv.compile(absolute);
  assert.ok(check(value), `${what}: ${ajv.errorsText(check.errors)}: ${JSON.stringify(value).slice(0, 300)}`);
}

/** Returns the headers of a caller who may use the operation. */
function credentials({ security }: Operation): Record<string, string> {
  if (security.some((way) => 'key' in way)) return { Authorization: `Bearer ${KEY}` };
  if (security.some((way) => 'password' in way)) {
    return { Authorization: `Basic ${Buffer.from(`any:${PASSWORD}`).toString('base64')}` };
  }
  return {};
}

function assertAnswer(operation: Operation, { status, text, headers }: Received, what: string): void {
  const type = String(headers['content-type']).split(';', 1)[0] ?? '';
  const documented = operation.responses[status];
  const content = documented?.content[type];
  assert.ok(content, `${what}: ${status} ${type} is not documented: ${text.slice(0, 200)}`);
  for (const name of Object.keys(documented.headers ?? {})) assert.ok(headers[name.toLowerCase()], `${what}: ${name}`);
  assertShape(type === 'application/json' ? JSON.parse(text) : text, content.schema, what);
}

suite('the OpenAPI document', () => {
  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    const { valid, errors } = await validator.validate(JSON.parse(JSON.stringify(DOCUMENT)));
    assert.ok(valid, JSON.stringify(errors));
    assert.equal(validator.version, '3.1');
  });

  test('has every example in the shape of its schema', () => {
    let examples = 0;
    for (const { path, operation } of OPERATIONS) {
      const bodies = [operation.requestBody, ...Object.values(operation.responses)];
      for (const [type, { schema, example, examples: named = {} }] of bodies.flatMap((body) =>
        Object.entries(body?.content ?? {}),
      )) {
        const values = [...(example === undefined ? [] : [example]), ...Object.values(named).map(({ value }) => value)];
        for (const value of values) assertShape(value, schema, `${path} ${type}`);
        examples += values.length;
      }
    }
    assert.ok(examples >= 10, `only ${examples} examples`);
  });
});

test('the documented API', async (t) => {
  const server = await LiveServer.start(t, { env: { SVC_API_KEY: KEY, SVC_PASSWORD: PASSWORD } });

  for (const { path, method: name, operation } of OPERATIONS) {
    const method = name.toUpperCase();
    const examples = operation.requestBody?.content['application/json']?.examples;

    for (const [example, { value }] of Object.entries(examples ?? {})) {
      await t.test(`answers the example "${example}" of ${method} ${path} as documented`, async () => {
        const sent = { method, path, headers: credentials(operation), body: JSON.stringify(value) };
        const received = await server.send(sent);
        assert.equal(received.status, 200, received.text);
        assertAnswer(operation, received, path);
      });
    }

    if (examples) {
      await t.test(`refuses a bad body of ${method} ${path} as documented`, async () => {
        for (const accept of ['*/*', 'application/json']) {
          const headers = { ...credentials(operation), Accept: accept };
          const received = await server.send({ method, path, headers, body: '{}' });
          assert.equal(received.status, 400);
          assertAnswer(operation, received, path);
        }
      });
    } else {
      await t.test(`answers ${method} ${path} as documented`, async () => {
        const received = await server.send({ method, path, headers: credentials(operation) });
        assert.equal(received.status, 200, received.text);
        assertAnswer(operation, received, path);
      });
    }

    if (operation.security.length > 0) {
      await t.test(`refuses a stranger to ${method} ${path} as documented`, async () => {
        const received = await server.send({ method, path, ...(examples && { body: '{}' }) });
        assert.equal(received.status, 401);
        assertAnswer(operation, received, path);
      });
    }
  }

  await t.test('says in lines what it says as a document', async () => {
    const path = '/v1/systemone/batch';
    const [example] = Object.values(
      DOCUMENT.paths[path]?.post?.requestBody?.content['application/json']?.examples ?? {},
    );
    const headers = { Authorization: `Bearer ${KEY}`, Accept: 'application/x-ndjson' };
    const received = await server.send({ method: 'POST', path, headers, body: JSON.stringify(example?.value) });
    const lines = received.text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.equal(lines.length, 4);
    for (const line of lines.slice(0, -1)) assertShape(line, { $ref: '#/components/schemas/BatchResult' }, 'a line');
    assertShape(lines.at(-1).usage, { $ref: '#/components/schemas/Usage' }, 'the last line');
  });

  await t.test('is served as it is made', async () => {
    const { text } = await server.get('/openapi.json');
    assert.deepEqual(JSON.parse(text), DOCUMENT);
  });
});
