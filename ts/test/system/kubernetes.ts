/** Runs the tools that render Kubernetes objects, and those that check them. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { Ajv } from 'ajv';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { REPOSITORY } from '../addon/model-folders.ts';
import { runCommand } from '../addon/program.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { runPython } from './python.ts';

export const KUSTOMIZE = join(REPOSITORY, 'deploy', 'kustomize');
export const CHART = join(REPOSITORY, 'deploy', 'helm', 'svc');

/** The oldest and the newest version of Kubernetes that the chart is checked for. */
const VERSIONS = ['1.27', '1.37'];

/** The Go modules and files with the definitions of the objects that Kubernetes itself does not define, by kind. */
const DEFINITIONS: Readonly<Record<string, readonly [module: string, file: string]>> = {
  ServiceMonitor: [
    'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    'example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml',
  ],
  ScaledObject: ['github.com/kedacore/keda/v2@v2.21.0', 'config/crd/bases/keda.sh_scaledobjects.yaml'],
};

/** The parts of an object that the tests look at. */
export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: unknown };
  readonly spec?: { readonly template?: unknown; readonly replicas?: number };
}

interface Schema {
  properties?: Record<string, Schema>;
  items?: Schema;
  additionalProperties?: Schema | boolean;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
}

const { SYSTEM_TEST_GO_TOOLS: TOOLS = '' } = process.env;

const tool = (name: string) => join(TOOLS, name);

/** Runs helm on the chart. */
export const helm = (command: string, args: readonly string[] = []) =>
  runCommand(tool('helm'), { args: [command, ...(command === 'template' ? ['svc'] : []), CHART, ...args] });

/** Returns the objects that helm renders from the chart with these values. */
export const rendered = (values: readonly string[]) => template(values.flatMap((value) => ['--set', value]));

/** Returns the objects that helm renders from the chart with a file of these values. */
export function renderedFrom(t: TestContext, values: object): Promise<Manifest[]> {
  const file = join(temporaryFolder(t), 'values.yaml');
  writeFileSync(file, stringify(values));
  return template(['--values', file]);
}

async function template(args: readonly string[]): Promise<Manifest[]> {
  const { code, stdout, stderr } = await helm('template', args);
  assert.equal(code, 0, stderr);
  return manifests(stdout);
}

/** Returns the objects that kustomize builds from a folder. */
export async function built(folder: string): Promise<Manifest[]> {
  const args = ['build', '--load-restrictor', 'LoadRestrictionsNone', folder];
  const { code, stdout, stderr } = await runCommand(tool('kustomize'), { args });
  assert.equal(code, 0, stderr);
  return manifests(stdout);
}

function manifests(text: string): Manifest[] {
  return parseAllDocuments(text).flatMap((document) => document.toJS() ?? []);
}

/** Checks each object against its definition; properties that the definition does not name fail. */
export async function check(t: TestContext, objects: readonly Manifest[]): Promise<void> {
  const file = join(temporaryFolder(t), 'objects.yaml');
  const own = objects.filter(({ kind }) => DEFINITIONS[kind] === undefined);
  writeFileSync(file, own.map((object) => JSON.stringify(object)).join('\n---\n'));
  for (const version of VERSIONS) {
    const args = ['-m', 'kubernetes_validate', '--strict', '-k', version, file];
    const { code, stdout, stderr } = await runPython(args);
    assert.equal(code, 0, stdout + stderr);
  }
  for (const object of objects) checkDefined(object);
}

function checkDefined(object: Manifest): void {
  const definition = DEFINITIONS[object.kind];
  if (definition === undefined) return;
  const [module, file] = definition;
  const answer = execFileSync('go', ['mod', 'download', '-json', module], { encoding: 'utf8', cwd: '/' });
  const { Dir: folder } = JSON.parse(answer) as { readonly Dir: string };
  const { spec } = parse(readFileSync(join(folder, file), 'utf8'));
  const ajv = new Ajv({ strict: false, validateFormats: false });
  assert.ok(ajv.validate(closed(spec.versions[0].schema.openAPIV3Schema), object), ajv.errorsText());
}

/**
 * Returns a schema in which an object may have only the properties that are named, except in its metadata, which the
 * schema does not describe.
 */
function closed(schema: Schema): Schema {
  const { properties, items } = schema;
  const inner = Object.entries(properties ?? {}).map(([name, value]) => [
    name,
    name === 'metadata' ? value : closed(value),
  ]);
  const isOpen = schema['x-kubernetes-preserve-unknown-fields'] || schema.additionalProperties !== undefined;
  return {
    ...schema,
    ...(properties && { properties: Object.fromEntries(inner), ...(!isOpen && { additionalProperties: false }) }),
    ...(items && { items: closed(items) }),
  };
}
