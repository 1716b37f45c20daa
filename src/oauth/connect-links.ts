import { createHash } from 'node:crypto';
import { type CompanyKey, type Environment, keyText } from '../core/company.js';
import { ofEnvironment } from '../core/provider-settings.js';
import { type ConnectLinkRow, findConnectLink, insertConnectLinks } from '../db/tables/connect-links.js';
import { findLostAuthorizations } from '../db/tables/connections.js';
import { readStanding } from '../db/tables/installation.js';
import { registerSecret } from '../observability/secret-registry.js';
import type { ConnectLinkSigner } from './connect-link-signer.js';
import type { Dependencies } from './grant-store.js';
import { requireOurs } from './installation.js';

const DAY_MS = 24 * 3_600_000;

/**
 * A link travels by mail or chat to somebody who may be away: shorter than a week and it is dead after a holiday, longer and
 * forgotten mail carries the right to connect. The flow that it starts lives for minutes only.
 */
const LINK_MS = 7 * DAY_MS;

/** Links that are shown beside a company live for one to two of these periods. */
const SHOWN_MS = LINK_MS / 2;

interface ConnectLinkDependencies extends Pick<Dependencies, 'db' | 'clock' | 'endpoints'> {
  readonly signer: ConnectLinkSigner;
  readonly publicUrl: URL;
}

/** The address is a secret: whoever has it may authorize. */
export interface ShownLink {
  readonly url: string;
  readonly expiresAt: Date;
}

const TOKEN = /^[\w-]{43}$/;

/** The links with which customers start the authorization flow. Of a token, only its hash is kept. */
export class ConnectLinks {
  readonly #deps: ConnectLinkDependencies;

  constructor(deps: ConnectLinkDependencies) {
    this.#deps = deps;
  }

  /** A new link, good for one authorization. Throws `environment_not_configured`. */
  async create(request: { environment: Environment; companyId?: string | undefined }): Promise<ShownLink> {
    const { environment, companyId = null } = request;
    const { db, clock, endpoints } = this.#deps;
    ofEnvironment(endpoints, environment);
    await requireOurs(db);
    const id = crypto.randomUUID();
    const expiresAt = new Date(clock.now() + LINK_MS);
    const token = this.#token(id);
    await insertConnectLinks(db, { links: [{ id, tokenHash: digest(token), environment, companyId }], expiresAt });
    return { url: this.#url(token), expiresAt };
  }

  /**
   * For each of the companies that must authorize again, the link that starts it, by `keyText`. It is the same one
   * however often it is asked for, until the company has authorized again or half a week has passed; there is none for
   * an environment that is not configured.
   */
  async reauthorizationLinks(companies: readonly CompanyKey[]): Promise<ReadonlyMap<string, ShownLink>> {
    const { db, clock, endpoints, signer } = this.#deps;
    const asked = companies.filter(({ environment }) => endpoints[environment]);
    if (asked.length === 0 || (await readStanding(db.prisma)) !== 'ours') return new Map();
    const period = Math.floor(clock.now() / SHOWN_MS);
    const expiresAt = new Date((period + 2) * SHOWN_MS);
    const lost = await findLostAuthorizations(db, asked);
    const links = lost.map(({ change, ...company }) => {
      const id = signer.linkId(`${change}|${period}`);
      const token = this.#token(id);
      return { ...company, id, token, tokenHash: digest(token) };
    });
    await insertConnectLinks(db, { links, expiresAt });
    return new Map(links.map((link) => [keyText(link), { url: this.#url(link.token), expiresAt }]));
  }

  /** Throws `environment_not_configured`. */
  requireConfigured(environment: Environment): void {
    ofEnvironment(this.#deps.endpoints, environment);
  }

  async findByToken(token: string): Promise<ConnectLinkRow | undefined> {
    return TOKEN.test(token) ? findConnectLink(this.#deps.db, { tokenHash: digest(token) }) : undefined;
  }

  /** The link's address, where it is still good; undefined, too, when it was made with a key that is no longer the current one. */
  urlOf({ id, tokenHash, expiresAt, completedAt }: ConnectLinkRow): string | undefined {
    const token = this.#token(id);
    const isGood = completedAt === null && expiresAt.getTime() > this.#deps.clock.now() && digest(token) === tokenHash;
    return isGood ? this.#url(token) : undefined;
  }

  #token(id: string): string {
    const token = this.#deps.signer.token(id);
    registerSecret(token);
    return token;
  }

  #url(token: string): string {
    return `${this.#deps.publicUrl.href.replace(/\/$/, '')}/connect/${token}`;
  }
}

function digest(token: string): string {
  return createHash('sha256').update(token).digest('base64url');
}
