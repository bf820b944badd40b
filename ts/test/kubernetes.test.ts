import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite, test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { ConfigSchema } from '../src/schemas/config.ts';
import { loadConfig } from '../src/settings/config.ts';
import { CONTAINER_LISTEN } from '../src/settings/container.ts';
import { REPOSITORY } from './addon/model-folders.ts';
import { startServer } from './http/server-under-test.ts';

interface Variable {
  readonly name: string;
  readonly value?: string;
  readonly valueFrom?: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
}

interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
}

interface Container {
  readonly env: readonly Variable[];
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly securityContext: object;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly startupProbe: Probe;
  readonly readinessProbe: Probe;
  readonly livenessProbe: Probe;
}

interface Pod {
  readonly containers: readonly [Container];
  readonly terminationGracePeriodSeconds: number;
  readonly automountServiceAccountToken: boolean;
  readonly enableServiceLinks: boolean;
  readonly securityContext: {
    readonly runAsNonRoot: boolean;
    readonly runAsUser: number;
    readonly runAsGroup: number;
    readonly seccompProfile: object;
  };
}

const read = (...path: string[]) => readFileSync(join(REPOSITORY, ...path), 'utf8');
const base = (file: string) => parseAllDocuments(read('deploy', 'kustomize', file)).map((document) => document.toJS());

const DOCKERFILE = read('Dockerfile');
const { version } = JSON.parse(read('package.json'));
const KUSTOMIZATION = parse(read('deploy', 'kustomize', 'kustomization.yaml'));
const [DEPLOYMENT] = base('deployment.yaml');
const POD: Pod = DEPLOYMENT.spec.template.spec;
const [CONTAINER] = POD.containers;

suite('the pods of deploy/kustomize', () => {
  test('have the port, the user and the folder of the image, and the version of the package', () => {
    assert.deepEqual(CONTAINER.ports, [{ name: 'http', containerPort: Number(CONTAINER_LISTEN.split(':').at(-1)) }]);
    const [, user, group] = /^USER (\d+):(\d+)$/m.exec(DOCKERFILE) ?? [];
    const { runAsUser, runAsGroup } = POD.securityContext;
    assert.deepEqual([runAsUser, runAsGroup], [Number(user), Number(group)]);
    const folders = CONTAINER.volumeMounts.map(({ mountPath }) => mountPath);
    assert.deepEqual(folders, [/^WORKDIR (\S+)$/m.exec(DOCKERFILE.slice(DOCKERFILE.lastIndexOf('FROM ')))?.[1]]);
    assert.deepEqual(KUSTOMIZATION.images, [{ name: 'svc', newTag: version }]);
  });

  test('may do nothing that the server does not do', () => {
    assert.deepEqual(CONTAINER.securityContext, {
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    const { runAsNonRoot, seccompProfile } = POD.securityContext;
    assert.deepEqual([runAsNonRoot, seccompProfile], [true, { type: 'RuntimeDefault' }]);
    assert.equal(POD.automountServiceAccountToken, false);
    // Otherwise the variables of a Kubernetes service called svc would be read as settings.
    assert.equal(POD.enableServiceLinks, false);
  });

  test('are asked on routes that the server has', async (t) => {
    const { get } = await startServer(t);
    for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe'] as const) {
      const { path, port } = CONTAINER[probe].httpGet;
      assert.equal(port, 'http');
      assert.equal((await get(path)).status, 200, path);
    }
    assert.equal(CONTAINER.readinessProbe.httpGet.path, '/readyz');
  });

  test('have settings that the server takes, and credentials that the image asks for', () => {
    const names = Object.keys(ConfigSchema.properties).map((key) => `SVC_${key.toUpperCase()}`);
    for (const { name } of CONTAINER.env) assert.ok(names.includes(name), name);
    const secret = CONTAINER.env.flatMap(({ name, valueFrom }) => (valueFrom ? [[name, valueFrom.secretKeyRef]] : []));
    assert.deepEqual(Object.fromEntries(secret), {
      SVC_PASSWORD: { name: 'svc', key: 'SVC_PASSWORD' },
      SVC_API_KEY: { name: 'svc', key: 'SVC_API_KEY' },
    });
  });

  test('have more time to end than the server takes', () => {
    const env = Object.fromEntries(CONTAINER.env.map(({ name, value }) => [name, value]));
    const { config } = loadConfig({ env: { ...env, SVC_PASSWORD: '', SVC_API_KEY: '' }, cwd: REPOSITORY });
    assert.ok(config.drainDelayMs > 0);
    assert.ok(POD.terminationGracePeriodSeconds * 1000 > config.drainDelayMs + config.drainMs);
  });

  test('are found by everything that is about them', () => {
    const labels = { 'app.kubernetes.io/name': 'svc' };
    assert.deepEqual(DEPLOYMENT.spec.template.metadata.labels, labels);
    assert.deepEqual(DEPLOYMENT.spec.selector.matchLabels, labels);
    for (const service of base('service.yaml')) assert.deepEqual(service.spec.selector, labels);
    assert.deepEqual(base('poddisruptionbudget.yaml')[0].spec.selector.matchLabels, labels);
    assert.deepEqual(base('networkpolicy.yaml')[0].spec.podSelector.matchLabels, labels);
    assert.equal(base('horizontalpodautoscaler.yaml')[0].spec.scaleTargetRef.name, DEPLOYMENT.metadata.name);
  });
});

test('the autoscaler looks at a metric that the adapter makes of one that the server has', async (t) => {
  const [{ spec }] = base('horizontalpodautoscaler.yaml');
  const [rule] = parse(read('deploy', 'kustomize', 'prometheus-adapter.yaml')).rules.custom;
  assert.equal(spec.metrics[0].pods.metric.name, rule.name.as);
  const server = await startServer(t);
  assert.equal((await server.decide()).status, 200);
  const { text } = await server.get('/metrics');
  const [scaled] = base(join('components', 'keda', 'scaledobject.yaml'));
  const queries = [rule.seriesQuery, rule.metricsQuery, scaled.spec.triggers[0].metadata.query];
  const series = queries.flatMap((query) => [...query.matchAll(/(svc_\w+)\{/g)].map(([, name]) => name));
  assert.equal(series.length, 4);
  for (const name of series) assert.match(text, new RegExp(`^${name}\\{phase="wait"\\} `, 'm'));
});

test('the chart takes every setting that is a variable, but for those that it has other values for', () => {
  const schema = JSON.parse(read('deploy', 'helm', 'svc', 'values.schema.json'));
  // A pod listens on a port, so its socket has no mode.
  const others = new Set(['generated', 'listen', 'listen_mode', 'device', 'api_key', 'password']);
  const keys = Object.keys(ConfigSchema.properties).filter((key) => !others.has(key));
  assert.deepEqual(schema.properties.settings.propertyNames.enum, keys);
});

test('the chart has the version of the package', () => {
  const chart = parse(read('deploy', 'helm', 'svc', 'Chart.yaml'));
  assert.deepEqual([chart.version, chart.appVersion], [version, version]);
});
