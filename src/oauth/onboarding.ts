import { type CompanyKey, describeCompany } from '../core/company.js';
import { type ErrorCode, MusterError } from '../core/errors.js';
import { ofEnvironment } from '../core/provider-settings.js';
import { digest, type Secret } from '../core/secret.js';
import { withDatabaseErrors } from '../db/connection/sql-state.js';
import { databaseTime } from '../db/tables/audit.js';
import { NamedLocks } from '../db/tables/named-locks.js';
import { deleteSuccessors, findSuccessor } from '../db/tables/quarantined-tokens.js';
import { registerSecret } from '../observability/secret-registry.js';
import { type Dependencies, type Origin, quarantine, saveGrant } from './grant-store.js';
import { requireOurs } from './installation.js';
import { answerText, type Grant, suspectOf, type TokenResponse } from './token-response.js';

/** Onboards companies. Proving a given refresh token uses it up, so everything else is checked first. */
export class Onboarding {
  readonly #deps: Dependencies;
  readonly #locks: NamedLocks;

  constructor(deps: Dependencies) {
    this.#deps = deps;
    this.#locks = new NamedLocks(deps.db.pool);
  }

  /**
   * Proves the token by a refresh and stores the grant; `created` is false if a company that had to authorize again
   * got its new token. If an earlier attempt used up the token and its successor went to quarantine, the successor is used, so that
   * the same request may be repeated. Throws `environment_not_configured`, `already_onboarded`, `onboarding_in_progress` (the same
   * company or token, right now), `token_refused`, `token_for_another_company` (the pair is then kept in quarantine),
   * `token_not_stored`, `company_not_found` (it was removed concurrently), `service_refused` (our client credentials), `service_unreachable`.
   */
  async onboard(request: CompanyKey & { readonly refreshToken: Secret }): Promise<{ created: boolean }> {
    const { environment, companyId, refreshToken } = request;
    const company = { environment, companyId };
    ofEnvironment(this.#deps.endpoints, environment);
    await withDatabaseErrors(requireOurs(this.#deps.db));
    registerSecret(refreshToken.reveal());
    const tokenHash = digest(refreshToken.reveal());
    const names = [`muster onboarding ${environment} ${companyId}`, `muster onboarding ${tokenHash}`];
    const done = await withDatabaseErrors(this.#locks.run(names, () => this.#onboardAlone(company, refreshToken, tokenHash)));
    if (done) return done.result;
    // This request does not wait for the other one: if that failed, each waiting request would send a token that may be used up.
    throw new MusterError(
      'onboarding_in_progress',
      `${describeCompany(company)}, or another one with the same token, is being onboarded right now, and this request sent no token; look at the company in a moment, and onboard it again if it is not there`,
    );
  }

  async #onboardAlone(company: CompanyKey, given: Secret, tokenHash: string): Promise<{ created: boolean }> {
    const { db, vault, connections, endpoints, received } = this.#deps;
    received.refuseKept(tokenHash);
    const found = await connections.find(company);
    if (found && found.status !== 'reauthorization_required') {
      const name = describeCompany(company);
      throw new MusterError('already_onboarded', `${name} is onboarded already (${found.status}); its token was not used`);
    }
    const origin = { since: await databaseTime(db.prisma), successorOf: tokenHash };
    const successor = await findSuccessor(db.prisma, { environment: company.environment, successorOf: tokenHash });
    if (successor) refuseOther(company, successor.companyId);
    const refreshToken = successor ? vault.openRefresh({ company, refreshToken: successor.refreshToken }) : given;
    const answer = await ofEnvironment(endpoints, company.environment).refresh(refreshToken);
    if (answer.kind === 'malformed')
      await quarantine(this.#deps, { company, reason: 'unusable_grant', refreshToken: answer.refreshToken, origin });
    const grant = granted(company, answer);
    await this.#refuseOther(company, grant, origin);
    const saved = await saveGrant(this.#deps, { company, grant: { refreshToken, ...grant }, origin }, async (tx) => {
      await deleteSuccessors(tx, { environment: company.environment, successorOf: tokenHash });
      return true;
    });
    if (typeof saved !== 'string') return saved;
    throw new MusterError(
      'company_not_found',
      `${describeCompany(company)} was removed while it was being onboarded; nothing was stored, and the token that was given is spent`,
    );
  }

  /** The service accepts the old token no more. The new one is the other company's only key, so it is kept for it. */
  async #refuseOther(company: CompanyKey, { companyId, refreshToken }: Grant, origin: Origin): Promise<void> {
    if (companyId === undefined || companyId === company.companyId) return;
    const other = { ...company, companyId };
    if (refreshToken) await quarantine(this.#deps, { company: other, reason: 'another_company', refreshToken, origin });
    refuseOther(company, companyId);
  }
}

function refuseOther(company: CompanyKey, companyId: string): void {
  if (companyId === company.companyId) return;
  throw new MusterError(
    'token_for_another_company',
    `The token that was given for ${describeCompany(company)} belongs to ${describeCompany({ ...company, companyId })}; nothing was onboarded. Onboard that company with the same token: Muster keeps its successor`,
  );
}

function granted(company: CompanyKey, answer: TokenResponse): Grant {
  if (answer.kind === 'granted') return answer;
  const [code, problem] = refusalOf(answer);
  const cause = answer.kind === 'unreachable' ? answer.cause : undefined;
  throw new MusterError(code, `${describeCompany(company)} was not onboarded: ${problem}`, { cause });
}

/** Code and message for an answer that granted nothing usable. */
function refusalOf(answer: Exclude<TokenResponse, Grant>): [ErrorCode, string] {
  switch (answer.kind) {
    case 'refused':
      return [
        'token_refused',
        'the service refuses the refresh token; have it authorize again, with a connect link for instance',
      ];
    case 'unexplained':
      return UNEXPLAINED[suspectOf(answer)](answerText(answer));
    case 'client_refused':
      return UNEXPLAINED.client(answerText(answer));
    case 'transient':
      return UNEXPLAINED.service(answerText(answer));
    case 'unreachable':
      return unreachable(`the token was not sent, because the authorization server cannot be reached: ${answer.cause.message}`);
    case 'malformed':
      return unreachable(
        'the authorization server granted no usable access token; the new refresh token is kept, so try again with the one that you gave',
      );
    case 'ambiguous':
      return unreachable(
        'the authorization server gave no readable answer; try again, and if the token is refused then, authorize again',
      );
  }
}

const unreachable = (problem: string): [ErrorCode, string] => ['service_unreachable', problem];

/** Code and message by the likely cause of a refusal without an explanation. */
const UNEXPLAINED = {
  token: (answered: string): [ErrorCode, string] => [
    'token_refused',
    `the service refuses the request without a reason (${answered}), as it may for a refresh token that is wrong, used up or revoked; have it authorize again, and if that is refused, too, check client id and client secret`,
  ],
  client: (answered: string): [ErrorCode, string] => [
    'service_refused',
    `the service refuses our client (${answered}); check client id, client secret and auth URL`,
  ],
  service: (answered: string) => unreachable(`the token endpoint answered ${answered}; try again`),
};
