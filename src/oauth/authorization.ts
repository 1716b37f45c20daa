import type { CompanyKey, Environment } from '../core/company.js';
import type { ProviderSettings } from '../core/provider-settings.js';
import { Secret } from '../core/secret.js';
import { advanceConnectLink, type ConnectLinkRow, completeConnectLink, findConnectLink } from '../db/tables/connect-links.js';
import type { Transaction } from '../db/transaction.js';
import { registerSecret } from '../observability/secret-registry.js';
import type { ConnectLinkSigner } from './connect-link-signer.js';
import type { ConnectLinks } from './connect-links.js';
import { type Dependencies, quarantine, saveGrant } from './grant-store.js';
import type { Grant, TokenAnswer } from './token-answer.js';

/** How long a member may take from the link to the consent: signing in, perhaps with a second factor, and choosing. */
const FLOW_MS = 15 * 60_000;

/** Stands for the company of a pair that the service did not name; it is kept in quarantine under this id. */
const UNNAMED = '00000000-0000-0000-0000-000000000000';

/** Why a flow did not start, or connected nothing. */
export type AuthorizationFailure =
  /** No link has this token, or its company was removed. */
  | 'unknown_link'
  | 'expired_link'
  /** The link has connected a company already. */
  | 'completed_link'
  /** Its environment is not configured, or the service refuses our client: nobody but the operator can help. */
  | 'not_configured'
  /** The service sent the browser back without a code. */
  | 'cancelled'
  /** Not signed by us. */
  | 'unknown_state'
  /** Started too long ago. */
  | 'expired_state'
  /** Its code was exchanged before, or the link was opened again and that flow has come further. */
  | 'spent_state'
  /** The service refuses the code. */
  | 'refused_code'
  /** The company that was chosen is not the one that the link names. */
  | 'wrong_company'
  /** The service was not reached, or gave no answer; the code may be spent. */
  | 'service_down'
  /** The service granted something that a company cannot be kept with. */
  | 'unusable_grant';

export type Started = { readonly location: URL } | Failed;

/** A consent that was completed: the company is stored, and may be synced. */
export interface Connected {
  readonly company: CompanyKey;
  /** False when the company was there and got a newer authorization. */
  readonly created: boolean;
}

export interface Failed {
  readonly failure: AuthorizationFailure;
  readonly environment?: Environment;
  /** The company that the link names. */
  readonly companyId?: string;
  /** Where the flow starts anew, where it can. */
  readonly again?: string;
}

interface AuthorizationDependencies extends Dependencies {
  readonly links: ConnectLinks;
  readonly signer: ConnectLinkSigner;
  readonly providers: Partial<Record<Environment, ProviderSettings>>;
}

/**
 * The authorization code flow from a connect link to a stored connection (docs/authorization.md). Starting it writes nothing, so a
 * program that previews links does no harm; the link's epoch makes sure that no state, and so no code, is exchanged twice.
 */
export class Authorization {
  readonly #deps: AuthorizationDependencies;
  readonly #exchanges = new Set<Promise<unknown>>();

  constructor(deps: AuthorizationDependencies) {
    this.#deps = deps;
  }

  /** Where to send the browser that opened a link. */
  async start(token: string): Promise<Started> {
    const { links, providers, signer, clock } = this.#deps;
    const link = await links.findByToken(token);
    if (!link) return { failure: 'unknown_link' };
    if (link.completedAt) return this.#failed('completed_link', link);
    if (link.expiresAt.getTime() <= clock.now()) return this.#failed('expired_link', link);
    const provider = providers[link.environment];
    if (!provider) return this.#failed('not_configured', link);
    const state = signer.state({ linkId: link.id, epoch: link.epoch, startedAt: clock.now() });
    registerSecret(state);
    return { location: authorizationUrl(provider, state, link.companyId) };
  }

  /** Exchanges the code that the browser brought back: it is sent to the service at once, and never again. */
  async finish({ code, state }: { code?: string | undefined; state?: string | undefined }): Promise<Connected | Failed> {
    const { db, signer, clock } = this.#deps;
    const flow = state === undefined ? undefined : signer.readState(state);
    const link = flow && (await findConnectLink(db, { id: flow.linkId }));
    if (!code) return link ? this.#failed('cancelled', link) : { failure: 'cancelled' };
    if (!flow) return { failure: 'unknown_state' };
    if (!link) return { failure: 'unknown_link' };
    if (link.completedAt) return this.#failed('completed_link', link);
    if (flow.epoch !== link.epoch) return this.#failed('spent_state', link);
    if (flow.startedAt + FLOW_MS <= clock.now()) return this.#failed('expired_state', link);
    registerSecret(code);
    const exchange = this.#exchange(link, new Secret(code));
    this.#exchanges.add(exchange);
    return exchange.finally(() => this.#exchanges.delete(exchange));
  }

  /** Resolves when no exchange is under way in this process; await it before the database is closed. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.#exchanges);
  }

  async #exchange(link: ConnectLinkRow, code: Secret): Promise<Connected | Failed> {
    const { db, endpoints } = this.#deps;
    const endpoint = endpoints[link.environment];
    if (!endpoint) return this.#failed('not_configured', link);
    if (!(await advanceConnectLink(db, link))) return this.#failed('spent_state', link);
    const outcome = await this.#conclude(link, await endpoint.exchangeCode(code));
    await this.#record(link, outcome);
    return outcome;
  }

  async #conclude(link: ConnectLinkRow, answer: TokenAnswer): Promise<Connected | Failed> {
    switch (answer.kind) {
      case 'granted':
        return this.#keep(link, answer);
      case 'malformed':
        await quarantine(this.#deps, nameOf(link, link.companyId), answer.refreshToken);
        return this.#failed('unusable_grant', link);
      case 'refused':
        return this.#failed('refused_code', link);
      case 'unexplained':
        // The page blames the code. Should our client be at fault, this line alone says so.
        this.#deps.logger.warn(
          { environment: link.environment, link: link.id, answer: answer.error },
          'the service refused a code without a reason; if it refuses every code, check client id, client secret and redirect URI',
        );
        return this.#failed('refused_code', link);
      case 'client_refused':
        return this.#failed('not_configured', link);
      case 'transient':
      case 'unreachable':
      case 'ambiguous':
        return this.#failed('service_down', link);
    }
  }

  /** A pair that cannot be stored for its company is kept in quarantine: it may be that company's only key. */
  async #keep(link: ConnectLinkRow, { refreshToken, ...grant }: Grant): Promise<Connected | Failed> {
    if (!refreshToken) return this.#failed('unusable_grant', link);
    const companyId = grant.companyId ?? link.companyId;
    const company = nameOf(link, companyId);
    const isOther = link.companyId !== null && companyId !== link.companyId;
    if (companyId !== null && !isOther) {
      const mayCommit = (tx: Transaction) => completeConnectLink(tx, { ...link, at: new Date(this.#deps.clock.now()) });
      const saved = await saveGrant(this.#deps, company, { ...grant, refreshToken }, mayCommit);
      if (saved) return { company, ...saved };
    }
    await quarantine(this.#deps, company, refreshToken);
    if (companyId === null) return this.#failed('unusable_grant', link);
    return this.#failed(isOther ? 'wrong_company' : 'spent_state', link);
  }

  /** Every exchange goes on record, even where it connected nothing. */
  async #record(link: ConnectLinkRow, outcome: Connected | Failed): Promise<void> {
    const { db, logger } = this.#deps;
    const { environment, companyId } = 'company' in outcome ? outcome.company : link;
    const result = 'company' in outcome ? 'done' : outcome.failure;
    logger[result === 'done' ? 'info' : 'warn'](
      { environment, company_id: companyId, link: link.id, result },
      'authorization code exchanged',
    );
    const details = { link_id: link.id, outcome: result };
    await db.prisma.auditEntry
      .create({ data: { actor: 'connect link', action: 'company.connect', environment, companyId, details } })
      .catch((error: unknown) =>
        logger.error({ err: error }, 'the exchange of an authorization code could not be put on record'),
      );
  }

  #failed(failure: AuthorizationFailure, link: ConnectLinkRow): Failed {
    const again = this.#deps.links.urlOf(link);
    return {
      failure,
      environment: link.environment,
      ...(link.companyId !== null && { companyId: link.companyId }),
      ...(again !== undefined && { again }),
    };
  }
}

/** GET {auth_url}/auth/authorize, the consent screen; `companyId`, where known, is chosen there beforehand. */
function authorizationUrl(provider: ProviderSettings, state: string, companyId: string | null): URL {
  const url = new URL(provider.authUrl);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/auth/authorize`;
  url.search = new URLSearchParams({
    response_type: 'code',
    client_id: provider.clientId,
    redirect_uri: provider.redirectUri.href,
    state,
    ...(companyId !== null && { company_id: companyId }),
  }).toString();
  return url;
}

function nameOf({ environment }: ConnectLinkRow, companyId: string | null): CompanyKey {
  return { environment, companyId: companyId ?? UNNAMED };
}
