import { type CompanyKey, type Environment, keyText } from '../core/company.js';
import { ofEnvironment } from '../core/provider-settings.js';
import { digest } from '../core/secret.js';
import { type ConnectLinkRow, findConnectLink, insertConnectLinks } from '../db/tables/connect-links.js';
import { findLostAuthorizations } from '../db/tables/connections.js';
import { readStanding } from '../db/tables/installation.js';
import { registerSecret } from '../observability/secret-registry.js';
import type { Keyring } from './cipher.js';
import type { Dependencies } from './grant-store.js';
import { requireOurs } from './installation.js';

const DAY_MS = 24 * 3_600_000;

/**
 * A link is sent by mail or chat to a person who may be away. If it were valid for less than a week, it would expire during a holiday; if
 * longer, forgotten mail would carry the right to connect. The flow that it starts lasts only minutes.
 */
const LINK_MS = 7 * DAY_MS;

/** Links that are shown with a company are valid for one to two of these periods. */
const SHOWN_MS = LINK_MS / 2;

interface ConnectLinkDependencies extends Pick<Dependencies, 'db' | 'clock' | 'endpoints'> {
  readonly keyring: Keyring;
  readonly publicUrl: URL;
}

/** The address is a secret: every person who has it may authorize. */
export interface ShownLink {
  readonly url: string;
  readonly expiresAt: Date;
}

const TOKEN = /^[\w-]{43}$/;

/** The links with which customers start the authorization flow. Only the hash of a token is stored. */
export class ConnectLinks {
  readonly #deps: ConnectLinkDependencies;

  constructor(deps: ConnectLinkDependencies) {
    this.#deps = deps;
  }

  /** Makes a new link for one authorization. Throws `environment_not_configured`. */
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
   * The links for the given companies that must authorize again, by `keyText`. A link stays the same until the company has
   * authorized again or half a week has passed. There is none if the environment is not configured.
   */
  async reauthorizationLinks(companies: readonly CompanyKey[]): Promise<ReadonlyMap<string, ShownLink>> {
    const { db, clock, endpoints } = this.#deps;
    const configured = companies.filter(({ environment }) => endpoints[environment]);
    if (configured.length === 0 || (await readStanding(db.prisma)) !== 'ours') return new Map();
    const period = Math.floor(clock.now() / SHOWN_MS);
    const expiresAt = new Date((period + 2) * SHOWN_MS);
    const lost = await findLostAuthorizations(db, configured);
    const links = lost.map(({ change, ...company }) => {
      const id = this.#linkId(`${change}|${period}`);
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

  /** The link's address; undefined if it is not valid any more, or was made with a key that is not the current one. */
  urlOf({ id, tokenHash, expiresAt, completedAt }: ConnectLinkRow): string | undefined {
    const token = this.#token(id);
    const isValid = completedAt === null && expiresAt.getTime() > this.#deps.clock.now() && digest(token) === tokenHash;
    return isValid ? this.#url(token) : undefined;
  }

  /** 43 characters, derived from the link's id, so that a link can be shown again although only the token's hash is stored. Another current key makes another token. */
  #token(linkId: string): string {
    const token = this.#mac('token', linkId).toString('base64url');
    registerSecret(token);
    return token;
  }

  /** A UUID derived from the subject, the same one until the current key changes. */
  #linkId(subject: string): string {
    const hex = this.#mac('link id', subject).toString('hex', 0, 16);
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  }

  #mac(purpose: 'token' | 'link id', text: string): Buffer {
    const { keyring } = this.#deps;
    return keyring.mac(keyring.currentId, `muster connect link ${purpose}`, text)!;
  }

  #url(token: string): string {
    return `${this.#deps.publicUrl.href.replace(/\/$/, '')}/connect/${token}`;
  }
}
