import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, posix } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { suite, type TestContext, test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { REPOSITORY } from '../addon/model-folders.ts';
import { LiveServer } from './live-server.ts';

const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN_ID = '00f067aa0ba902b7';
const HEADERS = { traceparent: `00-${TRACE_ID}-${SPAN_ID}-01` };
const DECISION = '{"state":"A text that only the caller knows","questions":{"q":{"type":"noul","instructions":"Q?"}}}';

interface Export {
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** A collector that keeps what it is sent, and answers with `status`. */
class FakeCollector {
  readonly exports: Export[] = [];
  url = '';

  static async start(t: TestContext, status = 200): Promise<FakeCollector> {
    const collector = new FakeCollector();
    const server = createServer(async (req, res) => {
      const body = await buffer(req);
      const isGzipped = req.headers['content-encoding'] === 'gzip';
      collector.exports.push({ path: req.url, headers: req.headers, body: isGzipped ? gunzipSync(body) : body });
      res.writeHead(status, { 'content-type': 'application/x-protobuf' }).end();
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => {
      server.closeAllConnections();
      server.close();
    });
    collector.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return collector;
  }

  /** Returns everything that was sent to `path`. */
  sent(path: string): Buffer {
    return Buffer.concat(this.exports.filter((each) => each.path === path).map(({ body }) => body));
  }
}

/** Whether protobuf bytes hold a field of a text or of bytes with this content. */
function holds(bytes: Buffer, content: string | Buffer): boolean {
  const wanted = Buffer.from(content);
  return bytes.includes(Buffer.concat([Buffer.from([wanted.length]), wanted]));
}

suite('OpenTelemetry', { timeout: 120_000 }, () => {
  test('gets the spans of a decision and the metrics, at the end of the process at the latest', async (t) => {
    const collector = await FakeCollector.start(t);
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20secret-of-the-collector',
      OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip',
      OTEL_SERVICE_NAME: 'decisions',
    };
    const server = await LiveServer.start(t, { env });
    const {
      headers: { traceresponse },
    } = await server.decide(DECISION, { headers: HEADERS });
    const [, traceId = '', spanId = ''] = String(traceresponse).split('-');
    assert.equal(traceId, TRACE_ID);
    assert.notEqual(spanId, SPAN_ID);
    const line = await server.process.logged(/"msg":"request"/);
    assert.ok(line.input.includes(`"trace_id":"${TRACE_ID}","span_id":"${spanId}"`));
    server.process.signal('SIGTERM');
    const { code, stderr } = await server.process.finished;
    assert.equal(code, 0);

    const spans = collector.sent('/v1/traces');
    for (const id of [TRACE_ID, SPAN_ID, spanId]) assert.ok(holds(spans, Buffer.from(id, 'hex')), id);
    for (const name of ['POST /v1/systemone', 'encode', 'wait', 'run', 'decisions'])
      assert.ok(holds(spans, name), name);
    const metrics = collector.sent('/v1/metrics');
    for (const name of ['svc_requests_total', 'svc_request_duration_seconds']) assert.ok(holds(metrics, name), name);
    for (const { headers: sent } of collector.exports) {
      assert.equal(sent.authorization, 'Bearer secret-of-the-collector');
      assert.equal(sent['content-type'], 'application/x-protobuf');
    }
    for (const bytes of [spans, metrics]) assert.equal(bytes.includes('A text that only the caller knows'), false);
    assert.match(
      stderr,
      /OpenTelemetry: spans to http:\/\/[\d.:]+\/v1\/traces, metrics to http:\/\/[\d.:]+\/v1\/metrics/,
    );
    assert.doesNotMatch(stderr, /secret-of-the-collector/);
  });

  test('that takes nothing is told about in the log, and delays neither answers nor the end', async (t) => {
    const collector = await FakeCollector.start(t, 400);
    const env = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: '20' };
    const server = await LiveServer.start(t, { env });
    assert.equal((await server.decide(DECISION)).status, 200);
    await server.process.logged(
      /"cause":"400 Bad Request","msg":"OpenTelemetry: a collector does not take what it is sent"/,
    );
    assert.equal((await server.decide(DECISION)).status, 200);
    server.process.signal('SIGTERM');
    assert.equal((await server.process.finished).code, 0);
  });

  test('that answers nothing delays the end for a moment, and the log says what is lost', async (t) => {
    const silent = createServer(() => {});
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    t.after(() => {
      silent.closeAllConnections();
      silent.close();
    });
    const { port } = silent.address() as AddressInfo;
    const server = await LiveServer.start(t, { env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` } });
    assert.equal((await server.decide(DECISION)).status, 200);
    server.process.signal('SIGTERM');
    const { code, stderr } = await server.process.finished;
    assert.equal(code, 0);
    assert.match(stderr, /OpenTelemetry: a collector has not taken the last of it in 3000 ms; it is lost/);
  });

  test('that cannot be used is a warning, and the server starts', async (t) => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' };
    const server = await LiveServer.start(t, { env });
    await server.process.logged(/OTEL_EXPORTER_OTLP_PROTOCOL: grpc is not spoken here/);
    const {
      headers: { traceresponse },
    } = await server.decide(DECISION, { headers: HEADERS });
    assert.equal(traceresponse, HEADERS.traceparent);
  });
});

/** Packages that only some programs need, each by a text that is in its code and nowhere else. */
const LAZY = { OpenTelemetry: 'OTLPMetricExporterBase', 'the MCP SDK': 'StdioServerTransport already started' };

suite('the bundle of the program', () => {
  const folder = join(REPOSITORY, 'dist', 'app');
  const files = readdirSync(folder).filter((name) => name.endsWith('.js'));
  const text = (name: string) => readFileSync(join(folder, name), 'utf8');
  /** Returns the files that are loaded together with `name`: its imports, but not those that are made later. */
  const loadedWith = (name: string, seen = new Set<string>()): Set<string> => {
    if (seen.has(name)) return seen;
    seen.add(name);
    for (const [, path = ''] of text(name).matchAll(/^(?:import|\} from|export).*?"(\.\/[^"]+\.js)";$/gm)) {
      loadedWith(posix.basename(path), seen);
    }
    return seen;
  };

  /** Returns the files that a command loads. */
  const loadedBy = (command: string): readonly string[] => {
    const entries = files.filter((name) => name === `${command}.js` || name.startsWith(`${command}-`));
    assert.ok(entries.length > 0, command);
    return entries.flatMap((entry) => [...loadedWith(entry)]);
  };

  for (const [part, page] of [
    ['mcp', 'mcp.md'],
    ['open-telemetry', 'opentelemetry.md'],
  ] as const) {
    test(`has the size that docs/stacks/${page} says`, () => {
      const served = new Set(['cli', 'serve', 'run'].flatMap(loadedBy));
      const own = new Set(loadedBy(part).filter((name) => !served.has(name)));
      const bytes = [...own].reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
      const [, said] = /: (\d+\.\d\d) MB in/.exec(readFileSync(join(REPOSITORY, 'docs', 'stacks', page), 'utf8')) ?? [];
      assert.ok(Math.abs(bytes / 1e6 - Number(said)) < 0.03, `${bytes} bytes`);
    });
  }

  for (const [what, mark] of Object.entries(LAZY)) {
    test(`loads ${what} only when it is on`, () => {
      const holders = files.filter((name) => text(name).includes(mark));
      assert.ok(holders.length > 0);
      for (const command of ['cli', 'beside', 'serve', 'run', 'ask', 'batch', 'gate']) {
        const wrong = loadedBy(command).filter((name) => holders.includes(name));
        assert.deepEqual(wrong, [], command);
      }
    });
  }
});
