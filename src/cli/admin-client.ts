import { readFile } from 'node:fs/promises';
import { type Dispatcher, request } from 'undici';
import { type Config, loadConfig } from '../config/config.js';
import { adminTokenPath } from '../config/kept-secrets.js';
import { CommandFailure } from './exit-code.js';

type Query = Readonly<Record<string, string | number | undefined>>;

/** The admin API of a running Muster, as the operator commands use it. */
export interface AdminClient {
  get<T>(path: string, query?: Query): Promise<T>;
  /** The answer as it came, so that numbers keep every digit. */
  getText(path: string, query: Query, accept: string): Promise<string>;
  /** Every page of a list. */
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

/** `url` goes before PUBLIC_URL and HOST:PORT. Throws invalid_configuration like the server itself would. */
export function openAdminClient({ url }: { url?: string | undefined }): AdminClient {
  const config = loadConfig(process.env);
  const base = (url ?? reachable(config.publicUrl)).replace(/\/+$/, '');

  async function send(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    options: { query?: Query; body?: object; accept?: string } = {},
  ) {
    const headers: Record<string, string> = { accept: options.accept ?? 'application/json' };
    if (path.startsWith('/api/')) headers.authorization = `Bearer ${await adminToken(config, base)}`;
    if (options.body) headers['content-type'] = 'application/json';
    const address = new URL(base + path);
    for (const [name, value] of Object.entries(options.query ?? {}))
      if (value !== undefined) address.searchParams.set(name, String(value));
    return reach(base, address, { method, headers, body: options.body ? JSON.stringify(options.body) : null });
  }

  async function text(...call: Parameters<typeof send>): Promise<string> {
    const { statusCode, body } = await send(...call);
    const answer = await body.text();
    if (statusCode >= 400) throw refusal(base, statusCode, answer);
    return answer;
  }

  async function get<T>(path: string, query: Query = {}): Promise<T> {
    return JSON.parse(await text('GET', path, { query }));
  }

  return {
    get,
    getText: (path, query, accept) => text('GET', path, { query, accept }),
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
      return JSON.parse(await text('POST', path, body ? { body } : {}));
    },
    async delete(path) {
      await text('DELETE', path);
    },
    async readiness() {
      const { body } = await send('GET', '/readyz');
      return (await body.json()) as Readiness;
    },
  };
}

async function reach(
  base: string,
  address: URL,
  options: { method: Dispatcher.HttpMethod; headers: Record<string, string>; body: string | null },
) {
  try {
    return await request(address, options);
  } catch (cause) {
    throw new CommandFailure(`muster is not running at ${base}: start it with \`npm start\`, or name its address with --url.`, {
      cause,
    });
  }
}

async function adminToken(config: Config, base: string): Promise<string> {
  if (config.adminToken) return config.adminToken.reveal();
  const file = adminTokenPath(config);
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch {
    // Where nothing listens, that is what to say first: the file is written when Muster starts.
    const { body } = await reach(base, new URL(`${base}/healthz`), { method: 'GET', headers: {}, body: null });
    await body.dump();
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
  return new CommandFailure(
    problemText(answer) ?? `${base} answered ${status}, which is not how Muster answers: see that --url is right.`,
    {
      badUsage: status === 400,
    },
  );
}

function problemText(answer: string): string | undefined {
  try {
    const { detail, code } = JSON.parse(answer);
    return typeof detail === 'string' && typeof code === 'string' ? `${detail} [${code}]` : undefined;
  } catch {
    return undefined;
  }
}

/** An address that means "every interface" to a server means nothing to a client. */
function reachable(publicUrl: URL): string {
  const url = new URL(publicUrl);
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = '127.0.0.1';
  return url.href;
}
