import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { suite, test } from 'node:test';
import { parse } from 'yaml';
import { loadConfig } from '../../src/settings/config.ts';
import { runCommand } from '../addon/program.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { built, check, helm, KUSTOMIZE, type Manifest, rendered, renderedFrom } from './kubernetes.ts';

/** The parts of a pod that these tests look at. */
interface Pod {
  readonly containers: readonly [
    { readonly env: readonly { readonly name: string; readonly value?: string }[]; readonly envFrom: unknown },
  ];
}

const kinds = (objects: readonly Manifest[]) => objects.map(({ kind }) => kind).sort();

const ALWAYS = ['Deployment', 'NetworkPolicy', 'PodDisruptionBudget', 'Service', 'Service', 'ServiceAccount'];

/** Returns the specification of the pods, without the parts that name them. */
function pods(objects: readonly Manifest[]): unknown {
  const deployment = objects.find(({ kind }) => kind === 'Deployment');
  const { spec } = JSON.parse(JSON.stringify(deployment?.spec?.template));
  delete spec.topologySpreadConstraints[0].labelSelector;
  // This is Kubernetes' own default for a tag that is a version.
  delete spec.containers[0].imagePullPolicy;
  return spec;
}

suite('the kustomize base', () => {
  test('is what Kubernetes defines', async (t) => {
    const objects = await built(KUSTOMIZE);
    assert.deepEqual(kinds(objects), [...ALWAYS, 'HorizontalPodAutoscaler'].sort());
    await check(t, objects);
  });

  test('takes the Prometheus operator and KEDA, which then is the only autoscaler', async (t) => {
    const folder = temporaryFolder(t);
    const path = (...parts: string[]) => relative(folder, join(KUSTOMIZE, ...parts));
    const components = [path('components', 'prometheus'), path('components', 'keda')];
    const kustomization = { resources: [path()], components };
    writeFileSync(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization));
    const objects = await built(folder);
    assert.deepEqual(kinds(objects), [...ALWAYS, 'ScaledObject', 'ServiceMonitor'].sort());
    await check(t, objects);
  });
});

suite('the chart', () => {
  test('has nothing that helm dislikes', async () => {
    const { code, stdout } = await helm('lint', ['--strict', '--set', 'existingSecret=svc']);
    assert.equal(code, 0, stdout);
  });

  test('makes the same pods as the base', async (t) => {
    const objects = await rendered(['existingSecret=svc']);
    assert.deepEqual(kinds(objects), [...ALWAYS, 'HorizontalPodAutoscaler'].sort());
    await check(t, objects);
    const base = await built(KUSTOMIZE);
    assert.deepEqual(pods(objects), pods(base));
    const behaviour = ({ kind }: Manifest) => kind === 'HorizontalPodAutoscaler';
    assert.deepEqual(objects.find(behaviour)?.spec, base.find(behaviour)?.spec);
  });

  test('is what Kubernetes defines with every option', async (t) => {
    const objects = await rendered([
      'password=at least 12 characters',
      'apiKey=at-least-16-characters',
      'image.repository=registry.example/svc',
      'image.tag=v1',
      'imagePullSecrets[0].name=pull',
      'args[0]=--log-level',
      'args[1]=warn',
      'autoscaling.kind=keda',
      'networkPolicy.from[0].namespaceSelector.matchLabels.name=ingress',
      'networkPolicy.egress[0].ports[0].port=443',
      'serviceMonitor.enabled=true',
      'serviceMonitor.labels.release=prometheus',
      'service.annotations.a=b',
      'podAnnotations.a=b',
      'nodeSelector.a=b',
      'tolerations[0].key=a',
      'affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key=a',
      'affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].operator=Exists',
    ]);
    assert.deepEqual(kinds(objects), [...ALWAYS, 'ScaledObject', 'Secret', 'ServiceMonitor'].sort());
    await check(t, objects);
    const fixed = await rendered(['existingSecret=svc', 'autoscaling.kind=none', 'networkPolicy.enabled=false']);
    assert.deepEqual(kinds(fixed), ALWAYS.filter((kind) => kind !== 'NetworkPolicy').sort());
    assert.equal(fixed.find(({ kind }) => kind === 'Deployment')?.spec?.replicas, 3);
    await check(t, fixed);
  });

  test('passes settings of every type as the server reads them, and what else the pods need', async (t) => {
    const settings = {
      model: 's3://bucket/model',
      model_max_bytes: 100_000_000,
      s3_path_style: true,
      refresh_minutes: 0,
      cors_origins: ['https://a.example', 'https://b.example'],
      state_cache_precision: 'fp16',
    };
    const env = [{ name: 'AWS_REGION', value: 'eu-west-1' }];
    const envFrom = [{ secretRef: { name: 'bucket' } }];
    const annotations = { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::1:role/svc' };
    const values = { existingSecret: 'svc', settings, env, envFrom, serviceAccount: { annotations } };
    const objects = await renderedFrom(t, values);
    await check(t, objects);
    assert.deepEqual(objects.find(({ kind }) => kind === 'ServiceAccount')?.metadata.annotations, annotations);
    const [container] = (pods(objects) as Pod).containers;
    assert.deepEqual(container.envFrom, envFrom);
    const variables = Object.fromEntries(container.env.map(({ name, value }) => [name, value]));
    const { AWS_REGION: region } = variables;
    assert.equal(region, 'eu-west-1');
    const { config } = loadConfig({ env: variables, cwd: temporaryFolder(t) });
    assert.equal(config.model, settings.model);
    assert.equal(config.modelMaxBytes, settings.model_max_bytes);
    assert.equal(config.s3PathStyle, true);
    assert.equal(config.refreshMinutes, 0);
    assert.deepEqual(config.corsOrigins, settings.cors_origins);
    assert.equal(config.stateCachePrecision, 'fp16');
  });

  for (const [what, values, message] of [
    ['no credentials', [], /set existingSecret, or password and apiKey/],
    ['a short password', ['password=short', 'apiKey=at-least-16-characters'], /at '\/password'/],
    ['a short key', ['password=at least 12 characters', 'apiKey=short'], /at '\/apiKey'/],
    ['a key among the settings', ['existingSecret=svc', 'settings.api_key=x'], /invalid propertyName 'api_key'/],
    ['a setting that is none', ['existingSecret=svc', 'settings.max_que=1'], /invalid propertyName 'max_que'/],
    ['a value that is none', ['existingSecret=svc', 'replica=3'], /'replica' not allowed/],
    [
      'too short a time to end',
      ['existingSecret=svc', 'settings.drain_ms=60000'],
      /terminationGracePeriodSeconds: must/,
    ],
  ] as const) {
    test(`refuses ${what}`, async () => {
      const args = values.flatMap((value) => ['--set', value]);
      const { code, stderr } = await helm('template', args);
      assert.equal(code, 1);
      assert.match(stderr, message);
    });
  }
});

test('the query of the adapter is one that Prometheus understands', async (t) => {
  const { rules } = parse(readFileSync(join(KUSTOMIZE, 'prometheus-adapter.yaml'), 'utf8'));
  const [{ metricsQuery, seriesQuery }] = rules.custom;
  const query = metricsQuery.replaceAll('<<.GroupBy>>', 'pod').replaceAll('<<.LabelMatchers>>', 'pod=~"a|b"');
  const recorded = [query, seriesQuery].map((expr, n) => ({ record: `query_${n}`, expr }));
  const file = join(temporaryFolder(t), 'rules.yml');
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'adapter', rules: recorded }] }));
  const { code, stdout, stderr } = await runCommand('promtool', { args: ['check', 'rules', file] });
  assert.equal(code, 0, stdout + stderr);
});
