import { readFile } from 'node:fs/promises';
import type { Dispatcher } from 'undici';
import { type Config, loadConfig } from '../config/config.js';
import { adminTokenPath } from '../config/kept-secrets.js';
import { connectionFailure } from '../core/connection-failure.js';
import { ownAddress } from '../core/own-address.js';
import { CommandFailure } from './exit-code.js';
import { isMuster, isMusterAt, runningUp } from './running-up.js';

type Query = Readonly<Record<string, string | number | undefined>>;

/** The admin API of a running Muster, as the operator commands use it. */
export interface AdminClient {
  get<T>(path: string, query?: Query): Promise<T>;
  /** Returns the answer as it came, so that numbers keep every digit. */
  getText(path: string, query: Query, accept: string): Promise<string>;
  /** Returns the items of every page of a list. */
  all<T>(path: string, query?: Query): Promise<T[]>;
  post<T>(path: string, body?: object): Promise<T>;
  delete(path: string): Promise<void>;
  /** Needs no token; `status` may be 503. */
  readiness(): Promise<Readiness>;
}

export interface Readiness {
  readonly ready: boolean;
  readonly parts: Readonly<Record<string, { readonly ready: boolean; readonly problem?: string }>>;
}

/** A client of the Muster at `url`, or of one that is found. Throws `invalid_configuration` as the server itself would. */
export function openAdminClient({ url }: { url?: string | undefined }): AdminClient {
  const config = loadConfig(process.env);
  let found: Promise<string> | undefined;
  const whereabouts = () => (found ??= url === undefined ? findMuster(config) : Promise.resolve(withoutSlash(url)));

  async function send(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    options: { query?: Query; body?: object; accept?: string } = {},
  ) {
    const base = await whereabouts();
    const headers: Record<string, string> = { accept: options.accept ?? 'application/json' };
    if (path.startsWith('/api/')) headers.authorization = `Bearer ${await adminToken(config, base)}`;
    if (options.body) headers['content-type'] = 'application/json';
    const address = new URL(base + path);
    for (const [name, value] of Object.entries(options.query ?? {}))
      if (value !== undefined) address.searchParams.set(name, String(value));
    return reach(base, address, { method, headers, body: options.body ? JSON.stringify(options.body) : null });
  }

  async function call(...what: Parameters<typeof send>): Promise<{ status: number; text: string }> {
    const { statusCode, body } = await send(...what);
    const text = await body.text();
    if (statusCode >= 400) throw refusal(await whereabouts(), statusCode, text);
    return { status: statusCode, text };
  }

  async function json<T>(...what: Parameters<typeof send>): Promise<T> {
    const { status, text } = await call(...what);
    const answer = parsed(text);
    if (!answer) throw notMuster(await whereabouts(), status);
    return answer as T;
  }

  const get = <T>(path: string, query: Query = {}) => json<T>('GET', path, { query });

  return {
    get,
    getText: async (path, query, accept) => (await call('GET', path, { query, accept })).text,
    async all<T>(path: string, query: Query = {}) {
      const items: T[] = [];
      let cursor: string | undefined;
      do {
        const page: { data: T[]; next_cursor: string | null } = await get(path, { limit: 500, ...query, cursor });
        items.push(...page.data);
        cursor = page.next_cursor ?? undefined;
      } while (cursor !== undefined);
      return items;
    },
    async post<T>(path: string, body?: object): Promise<T> {
      return json('POST', path, body ? { body } : {});
    },
    async delete(path) {
      await call('DELETE', path);
    },
    async readiness() {
      const { statusCode, body } = await send('GET', '/readyz');
      const readiness: Partial<Readiness> | undefined = parsed(await body.text());
      if (!readiness?.parts) throw notMuster(await whereabouts(), statusCode);
      return readiness as Readiness;
    },
  };
}

async function reach(
  base: string,
  address: URL,
  options: { method: Dispatcher.HttpMethod; headers: Record<string, string>; body: string | null },
) {
  const { request } = await import('undici'); // half of the time that `muster --help` would take
  try {
    return await request(address, options);
  } catch (cause) {
    const message =
      (cause as NodeJS.ErrnoException).code === 'ECONNREFUSED'
        ? `muster is not running at ${base}: start it with \`npm start\`, or name its address with --url.`
        : `${base} cannot be reached: ${connectionFailure(cause).trim()}. See that this is the address of the admin API, or give it with --url.`;
    throw new CommandFailure(message, { cause });
  }
}

async function adminToken(config: Config, base: string): Promise<string> {
  if (config.adminToken) return config.adminToken.reveal();
  const file = adminTokenPath(config);
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch {
    // The file is written when Muster starts. So where nothing listens, the message must say that, and not name the file.
    await askHealth(base);
    throw new CommandFailure(
      `No admin token: set MUSTER_ADMIN_TOKEN, or MUSTER_HOME to the folder in which Muster keeps it (${file} cannot be read).`,
      {
        badUsage: true,
      },
    );
  }
}

function refusal(base: string, status: number, answer: string): CommandFailure {
  if (status === 401)
    return new CommandFailure(`${base} refused the admin token: see that MUSTER_ADMIN_TOKEN or MUSTER_HOME belong to it.`, {
      badUsage: true,
    });
  const { detail, code } = (parsed(answer) ?? {}) as { detail?: string; code?: string };
  if (!detail || !code) return notMuster(base, status);
  return new CommandFailure(`${detail} [${code}]`, { badUsage: status === 400 });
}

function notMuster(base: string, status: number): CommandFailure {
  return new CommandFailure(
    `${base} answered ${status}, which is not how Muster answers: give the address of its admin API with --url, such as http://127.0.0.1:8080.`,
  );
}

/** The JSON object in the answer; undefined when the answer is something else. */
function parsed(answer: string): object | undefined {
  try {
    const value: unknown = JSON.parse(answer);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Looks for a Muster at HOST:PORT of this machine where one of them is set, then where the `muster up` of this MUSTER_HOME listens, then at
 * PUBLIC_URL, which may lead here only from outside. The admin token is sent there, so it is not enough that some program listens.
 */
async function findMuster(config: Config): Promise<string> {
  const publicUrl = withoutSlash(config.publicUrl.href);
  const here = withoutSlash(ownAddress(config.host, config.port).href);
  const up = runningUp(config)?.url;
  const candidates = process.env.HOST || process.env.PORT ? [here, up, publicUrl] : [up, publicUrl, here];
  for (const candidate of candidates) if (candidate && (await isMusterAt(candidate))) return candidate;
  const { statusCode, headers } = await askHealth(publicUrl);
  if (isMuster(headers['x-service'])) return publicUrl;
  throw notMuster(publicUrl, statusCode);
}

/** Throws when nobody answers. */
async function askHealth(base: string): Promise<Dispatcher.ResponseData> {
  const response = await reach(base, new URL(`${base}/healthz`), { method: 'GET', headers: {}, body: null });
  await response.body.dump();
  return response;
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, '');
}
