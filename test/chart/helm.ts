import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const CHART = fileURLToPath(new URL('../../deploy/chart', import.meta.url));

/** Both are in use: Helm 3 gets fixes until November 2026, and most installations have it. */
export const HELMS = ['helm-3', 'helm-4'] as const;
export type Helm = (typeof HELMS)[number];

/** Names of files in test/chart/values, without their ending. */
export const VALUES = ['minimal', 'everything', 'openshift', 'bare'] as const;

export interface Outcome {
  readonly code: number | null;
  readonly output: string;
  readonly problem: string;
}

function run(program: string, args: readonly string[], input?: string): Outcome {
  const { status, stdout, stderr, error } = spawnSync(`${HERE}bin/${program}`, args, { encoding: 'utf8', input });
  if (error) throw error;
  return { code: status, output: stdout, problem: stderr };
}

/** Runs Helm on the chart with one of the files of values, and settings as for `--set`. */
export function helm(
  command: readonly string[],
  values: (typeof VALUES)[number],
  { by = 'helm-4', set = [] }: { by?: Helm; set?: readonly string[] } = {},
): Outcome {
  // A Helm that Go built believes in an old Kubernetes unless it is told.
  const version = command[0] === 'install' ? [] : ['--kube-version', '1.37.0'];
  return run(by, [
    ...command,
    ...version,
    CHART,
    '--values',
    `${HERE}values/${values}.yaml`,
    ...set.flatMap((each) => ['--set', each]),
  ]);
}

/** The text of all manifests. Throws what Helm says where it refuses. */
export function template(values: (typeof VALUES)[number], options?: Parameters<typeof helm>[2]): string {
  const { code, output, problem } = helm(['template', 'fleet', '--namespace', 'records'], values, options);
  if (code !== 0) throw new Error(problem);
  return output;
}

export interface Container {
  readonly name: string;
  readonly image: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: object }[];
  readonly envFrom: readonly { readonly configMapRef: { readonly name: string } }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly resources: object;
  readonly readinessProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly startupProbe?: Probe;
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
}

export interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string };
  readonly timeoutSeconds: number;
}

export interface Volume {
  readonly name: string;
  readonly secret?: { readonly secretName: string; readonly defaultMode: number; readonly items: readonly Item[] };
  readonly configMap?: { readonly name: string; readonly items?: readonly Item[] };
  readonly emptyDir?: object;
  readonly hostPath?: { readonly path: string };
  readonly persistentVolumeClaim?: object;
}

export interface Item {
  readonly key: string;
  readonly path: string;
}

export interface Pod {
  readonly containers: readonly Container[];
  readonly volumes: readonly Volume[];
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly automountServiceAccountToken: boolean;
  readonly serviceAccountName: string;
  readonly terminationGracePeriodSeconds?: number;
}

/** A manifest, with the members that the tests look at. */
export interface Manifest {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels: Record<string, string>;
    readonly annotations?: Record<string, string>;
  };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec: {
    readonly replicas?: number;
    readonly selector: { readonly matchLabels: Record<string, string> };
    readonly strategy?: { readonly rollingUpdate: object };
    readonly template: { readonly metadata: Manifest['metadata']; readonly spec: Pod };
  } & Readonly<Record<string, unknown>>;
}

/** The manifests of a text, in its order. */
export function manifestsOf(text: string): Manifest[] {
  const manifests = parseAllDocuments(text).map((document) => document.toJS() as Manifest | null);
  return manifests.filter((manifest) => manifest !== null);
}

/** The manifest of this kind and with this end of its name. Throws where there is none. */
export function find(manifests: readonly Manifest[], kind: string, end = ''): Manifest {
  const found = manifests.find((manifest) => manifest.kind === kind && manifest.metadata.name.endsWith(end));
  if (!found) throw new Error(`there is no ${kind} ${end}`);
  return found;
}

/** The pods of all manifests, by the name of their container. */
export function podsOf(manifests: readonly Manifest[]): Record<string, Pod> {
  const pods = manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'Job').map(({ spec }) => spec.template.spec);
  return Object.fromEntries(pods.map((pod) => [pod.containers[0]?.name ?? '', pod]));
}

/** What Kubernetes would refuse of these manifests; none if it takes them. */
export function faultsOf(manifests: string): string[] {
  const { code, output, problem } = run('validate', [], manifests);
  if (problem !== '') throw new Error(problem);
  return code === 0 ? [] : output.trim().split('\n');
}
