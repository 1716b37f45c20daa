import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { waitFor } from '../support/wait-for.js';
import type { Container, Item, Manifest, Pod, Probe, Volume } from './helm.js';

/** Never the synchronous kind: this process hands on what the container asks of PostgreSQL. */
const execute = promisify(execFile);

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const SCRIPT = fileURLToPath(new URL('container.sh', import.meta.url));

/** As OpenShift chooses one: no user of the image has it. Its group is 0. */
const ANY_USER = 1_000_660_000;

/** Secrets and the ConfigMaps of a namespace, by name and key. */
export interface Namespace {
  readonly secrets: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly manifests: readonly Manifest[];
}

/** A container of a pod, with everything that its manifest gives it, and nothing else. Needs root. */
export class RunningContainer {
  readonly #container: Container;
  readonly #folder: string;
  readonly #child: ChildProcess;
  readonly exit: Promise<number | null>;
  output = '';

  private constructor(container: Container, folder: string, child: ChildProcess) {
    this.#container = container;
    this.#folder = folder;
    this.#child = child;
    this.exit = once(child, 'exit').then(([code]: (number | null)[]) => code ?? null);
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (this.output += text));
  }

  /** Throws where the manifest names a Secret, a key or a ConfigMap that the namespace does not have, as the kubelet would wait for it. */
  static start(pod: Pick<Pod, 'containers' | 'volumes'>, namespace: Namespace, procOptions = ''): RunningContainer {
    const [container] = pod.containers;
    if (!container) throw new Error('the pod has no container');
    const folder = mkdtempSync(join(tmpdir(), 'muster-pod-'));
    chmodSync(folder, 0o755);
    const folders = new Map(pod.volumes.map((volume) => [volume.name, makeVolume(join(folder, volume.name), volume, namespace)]));
    const mounts = container.volumeMounts.map(
      ({ name, mountPath, readOnly }) => `${readOnly ? 'ro' : 'rw'} ${folders.get(name)} ${mountPath}\n`,
    );
    writeFileSync(join(folder, 'mounts'), mounts.join(''));
    mkdirSync(join(folder, 'root'));
    const variables = Object.entries(variablesOf(container, namespace)).map(([name, value]) => `${name}=${value}`);
    const own = [join(folder, 'root'), PROJECT, String(ANY_USER), join(folder, 'mounts')];
    const args = [
      '--mount',
      '--net',
      '--pid',
      '--fork',
      '--kill-child',
      'sh',
      SCRIPT,
      ...own,
      ...variables,
      '/app/bin/muster',
      ...container.args,
    ];
    return new RunningContainer(
      container,
      folder,
      spawn('unshare', args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, PROC_OPTIONS: procOptions } }),
    );
  }

  /** The status of one of the container's own probes; undefined while nothing listens. */
  probe(which: 'startupProbe' | 'livenessProbe' | 'readinessProbe'): Promise<number | undefined> {
    const { httpGet, timeoutSeconds } = this.#container[which] as Probe;
    const port = this.#container.ports?.find(({ name }) => name === httpGet.port)?.containerPort;
    return this.get(`http://127.0.0.1:${port}${httpGet.path}`, {}, timeoutSeconds * 1_000);
  }

  /** The status of a GET from inside the pod's network; undefined while nothing listens. */
  async get(url: string, headers: Readonly<Record<string, string>> = {}, timeoutMs = 10_000): Promise<number | undefined> {
    const options = `{ headers: ${JSON.stringify(headers)}, signal: AbortSignal.timeout(${timeoutMs}) }`;
    const script = `fetch('${url}', ${options}).then(({ status }) => console.log(status), () => console.log(0))`;
    const { stdout } = await execute('nsenter', ['--net', `--target=${this.#pid()}`, process.execPath, '-e', script]);
    return Number(stdout) || undefined;
  }

  /** Resolves when the probe succeeds. Throws when the container ends before. */
  async succeeds(which: Parameters<RunningContainer['probe']>[0]): Promise<void> {
    const ended = this.exit.then(() => Promise.reject(new Error(`the container has ended:\n${this.output}`)));
    await Promise.race([waitFor(async () => (await this.probe(which)) === 200, { intervalMs: 500 }), ended]);
  }

  /** Ends it as the kubelet does. Resolves with the exit code. */
  async stop(): Promise<number | null> {
    const pid = this.#pid();
    process.kill(pid!, 'SIGTERM');
    return this.exit;
  }

  /** What a command in it prints, as by kubectl exec: with the variables of its first process, and its user. */
  async command(words: readonly string[]): Promise<string> {
    const variables = Object.entries(this.environment()).map(([name, value]) => `${name}=${value}`);
    const user = [
      `--reuid=${ANY_USER}`,
      '--regid=0',
      '--clear-groups',
      '--no-new-privs',
      '--bounding-set=-all',
      '--inh-caps=-all',
    ];
    const inside = ['--all', '--root', '--wd', `--target=${this.#pid()}`, 'setpriv', ...user, 'env', '-i', ...variables];
    return (await execute('nsenter', [...inside, ...words])).stdout;
  }

  /** The environment of its first process. */
  environment(): Record<string, string> {
    const pairs = readFileSync(`/proc/${this.#pid()}/environ`, 'utf8').split('\0').filter(Boolean);
    return Object.fromEntries(pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]));
  }

  remove(): void {
    this.#child.kill('SIGKILL');
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** The first process of the container, as this machine numbers it. */
  #pid(): number | undefined {
    const { pid } = this.#child;
    const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
    return first ? Number(first) : undefined;
  }
}

/** Returns the folder whose contents the volume has. */
function makeVolume(
  folder: string,
  { name, secret, configMap, emptyDir, hostPath, persistentVolumeClaim }: Volume,
  { secrets, manifests }: Namespace,
): string {
  if (hostPath) return hostPath.path;
  mkdirSync(folder);
  // A claim is like an empty folder where the storage gives it to the pod's group.
  if (emptyDir || persistentVolumeClaim) chmodSync(folder, 0o777);
  else if (secret) write(folder, secret.items, secrets[secret.secretName], secret.defaultMode);
  else if (configMap) write(folder, configMap.items ?? [], dataOf(manifests, configMap.name), 0o644);
  else throw new Error(`volume ${name} is of no kind that is known here`);
  return folder;
}

function write(folder: string, items: readonly Item[], data: Readonly<Record<string, string>> | undefined, mode: number): void {
  for (const { key, path } of items) {
    const text = data?.[key];
    if (text === undefined) throw new Error(`there is no key ${key}`);
    writeFileSync(join(folder, path), text);
    chmodSync(join(folder, path), mode);
  }
}

function dataOf(manifests: readonly Manifest[], wanted: string): Readonly<Record<string, string>> {
  const found = manifests.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === wanted);
  if (!found) throw new Error(`there is no ConfigMap ${wanted}`);
  return found.data ?? {};
}

function variablesOf({ envFrom, env }: Container, { manifests }: Namespace): Record<string, string> {
  // A key such as catalogue.yaml is no name of a variable, and the kubelet leaves it out.
  const given = envFrom.flatMap(({ configMapRef }) =>
    Object.entries(dataOf(manifests, configMapRef.name)).filter(([name]) => /^\w+$/.test(name)),
  );
  const variables: Record<string, string> = { ...Object.fromEntries(given), HOSTNAME: 'pod' };
  for (const { name, value = 'fleet-muster-7d4b9c-x2k8p' } of env)
    variables[name] = value.replaceAll(/\$\((\w+)\)/g, (whole, other: string) => variables[other] ?? whole);
  return variables;
}
