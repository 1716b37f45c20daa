import { readFile } from 'node:fs/promises';
import type { Dispatcher } from 'undici';
import type { OverviewModel } from '../../api/operation/overview.js';
import { type Config, loadConfig } from '../../config/config.js';
import { adminTokenPath } from '../../config/kept-secrets.js';
import { connectionFailure } from '../../core/connection-failure.js';
import { ownAddress, withoutSlash } from '../../core/own-address.js';
import { WHOLE_LIST_MS } from '../../db/connection/transaction.js';
import { callsAsCommands } from '../calls-as-commands.js';
import { CommandFailure, UsageFailure } from '../exit-code.js';
import { isMuster, isMusterAt, runningUp } from '../running-up.js';

type Query = Readonly<Record<string, string | number | undefined>>;

type Method = 'GET' | 'POST' | 'DELETE';

interface Call {
  readonly query?: Query;
  readonly body?: object | undefined;
  readonly accept?: string;
}

interface Response {
  /** The Muster that sent it. */
  readonly base: string;
  readonly status: number;
  readonly text: string;
}

/** The admin API of the Muster at `url`, or of one that is found. Throws `invalid_configuration` like the server itself. */
export function openAdminClient({ url }: { url?: string | undefined }): AdminClient {
  return new AdminClient(loadConfig(process.env), url);
}

/** The admin API of a running Muster, as the operator commands use it. */
export class AdminClient {
  readonly #config: Config;
  #base: Promise<string> | undefined;

  constructor(config: Config, url: string | undefined) {
    this.#config = config;
    if (url !== undefined) this.#base = Promise.resolve(withoutSlash(url));
  }

  get<T>(path: string, query: Query = {}): Promise<T> {
    return this.#json('GET', path, { query });
  }

  /** Returns the text of the response, so that numbers keep every digit. */
  async getText(path: string, query: Query, accept: string): Promise<string> {
    return (await this.#call('GET', path, { query, accept })).text;
  }

  /** Returns the items of a list: at most `limit` of them, or without a limit the items of every page. */
  async list<T>(path: string, query: Query = {}): Promise<T[]> {
    const items: T[] = [];
    let cursor: string | undefined;
    do {
      const page: { data: T[]; next_cursor: string | null } = await this.get(path, {
        ...query,
        limit: query.limit ?? 500,
        cursor,
      });
      items.push(...page.data);
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined && query.limit === undefined);
    return items;
  }

  post<T>(path: string, body?: object): Promise<T> {
    return this.#json('POST', path, { body });
  }

  async delete(path: string): Promise<void> {
    await this.#call('DELETE', path);
  }

  /** Throws if another program responds. */
  async overview(): Promise<OverviewModel> {
    const response = await this.#call('GET', '/api/overview');
    const overview: Partial<OverviewModel> | undefined = parsed(response.text);
    if (!overview?.parts) throw notMuster(response);
    return overview as OverviewModel;
  }

  async #json<T>(method: Method, path: string, call: Call): Promise<T> {
    const response = await this.#call(method, path, call);
    const value = parsed(response.text);
    if (!value) throw notMuster(response);
    return value as T;
  }

  async #call(method: Method, path: string, call: Call = {}): Promise<Response> {
    const response = await this.#send(method, path, call);
    if (response.status >= 400) throw refusal(response);
    return response;
  }

  async #send(method: Method, path: string, { query = {}, body, accept = 'application/json' }: Call = {}): Promise<Response> {
    const base = await (this.#base ??= findMuster(this.#config));
    const headers: Record<string, string> = { accept, authorization: `Bearer ${await adminToken(this.#config, base)}` };
    if (body) headers['content-type'] = 'application/json';
    const address = new URL(base + path);
    for (const [name, value] of Object.entries(query)) if (value !== undefined) address.searchParams.set(name, String(value));
    const response = await reach(base, address, { method, headers, body: body ? JSON.stringify(body) : null });
    return { base, status: response.statusCode, text: await response.body.text() };
  }
}

async function reach(base: string, address: URL, options: Pick<Dispatcher.RequestOptions, 'method' | 'headers' | 'body'>) {
  const { request } = await import('undici'); // half of the time that `muster --help` would take
  try {
    // Removing a company with some million records takes minutes.
    return await request(address, options.method === 'GET' ? options : { ...options, headersTimeout: WHOLE_LIST_MS });
  } catch (cause) {
    const message =
      (cause as NodeJS.ErrnoException).code === 'ECONNREFUSED'
        ? `muster is not running at ${base}: start it with \`npm start\`, or name its address with --url.`
        : `${base} cannot be reached: ${connectionFailure(cause).trim()}. Check that this is the address of the admin API, or give it with --url.`;
    throw new CommandFailure(message, { cause });
  }
}

async function adminToken(config: Config, base: string): Promise<string> {
  if (config.adminToken) return config.adminToken.reveal();
  const file = adminTokenPath(config);
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch {
    // Muster writes the file when it starts. If nothing listens, the message must say so instead of naming the file.
    await askHealth(base);
    throw new UsageFailure(
      `No admin token: set MUSTER_ADMIN_TOKEN, or MUSTER_HOME to the folder in which Muster keeps it (${file} cannot be read).`,
    );
  }
}

function refusal({ base, status, text }: Response): CommandFailure {
  if (status === 401)
    return new UsageFailure(
      `${base} refused the token: check that MUSTER_ADMIN_TOKEN or MUSTER_HOME belongs to it, and that a named token is neither deleted nor expired.`,
    );
  const { detail, code } = (parsed(text) ?? {}) as { detail?: string; code?: string };
  if (!detail || !code) return notMuster({ base, status });
  // A list that is not there is a mistyped name, as an option with a wrong value is.
  const isUsage = status === 400 || code === 'unknown_resource';
  return new (isUsage ? UsageFailure : CommandFailure)(`${callsAsCommands(detail)} [${code}]`);
}

function notMuster({ base, status }: Pick<Response, 'base' | 'status'>): CommandFailure {
  return new CommandFailure(
    `${base} answered ${status}, which is not how Muster answers: give the address of its admin API with --url, such as http://127.0.0.1:8080.`,
  );
}

/** The JSON object in the text; undefined for any other text. */
function parsed(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Looks for a Muster at HOST:PORT of this machine if one of them is set, then where the `muster up` of this MUSTER_HOME listens, then at
 * PUBLIC_URL, which may lead here only from outside. The admin token is sent there, so the program that listens must be a Muster.
 */
async function findMuster(config: Config): Promise<string> {
  const publicUrl = withoutSlash(config.publicUrl);
  const here = withoutSlash(ownAddress(config.host, config.port));
  const up = runningUp(config)?.url;
  const candidates = process.env.HOST || process.env.PORT ? [here, up, publicUrl] : [up, publicUrl, here];
  for (const candidate of candidates) if (candidate && (await isMusterAt(candidate))) return candidate;
  const { statusCode, headers } = await askHealth(publicUrl);
  if (isMuster(headers['x-service'])) return publicUrl;
  throw notMuster({ base: publicUrl, status: statusCode });
}

/** Throws if nothing answers. */
async function askHealth(base: string): Promise<Dispatcher.ResponseData> {
  const response = await reach(base, new URL(`${base}/healthz`), { method: 'GET', headers: {}, body: null });
  await response.body.dump();
  return response;
}
