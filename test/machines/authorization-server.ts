import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';

/** Form fields as they were sent to the token endpoint. */
export type TokenRequest = Readonly<Record<string, string | undefined>>;

export interface AuthorizationServer {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly tokenRequests: readonly TokenRequest[];
  /** An API with three employees and one department for each company, which takes the access tokens of this server. */
  readonly apiUrl: string;
  stop(): Promise<void>;
}

/**
 * panva's oidc-provider, certified for OpenID Connect, with the rotation that takes a second use of a refresh token for theft, PKCE demanded, and
 * its own pages for sign-in and consent. Whoever signs in with the GUID of a company may decide for that company.
 *
 * Three things are the service's and not the provider's, and are set here: the paths `/auth/authorize` and `/auth/token`; a refresh token without
 * the scope `offline_access`; and `company_id` beside the tokens, which the middleware adds to the answer.
 */
export async function startAuthorizationServer(redirectUri: string): Promise<AuthorizationServer> {
  const [clientId, clientSecret] = ['muster-at-oidc-provider', 'secret-of-muster-at-oidc-provider'];
  const server = createServer();
  const url = await listen(server);
  const provider = new Provider(url, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    routes: { authorization: '/auth/authorize', token: '/auth/token' },
    scopes: ['openid', 'offline_access', 'employees.read'],
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: () => true,
    findAccount: (_context: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
    features: { devInteractions: { enabled: true } },
    extraParams: ['company_id'],
    cookies: { keys: ['a-key-of-tests'] },
    ttl: {
      AccessToken: 1799,
      AuthorizationCode: 300,
      Grant: 86_400,
      IdToken: 1799,
      Interaction: 600,
      RefreshToken: 86_400,
      Session: 600,
    },
  });
  const tokenRequests: TokenRequest[] = [];
  provider.use(async (context, next) => {
    await next();
    if (context.path !== '/auth/token') return;
    tokenRequests.push({ ...context.oidc.params });
    const companyId = context.oidc.entities.Account?.accountId;
    if (context.status === 200) context.body = { ...(context.body as object), company_id: companyId };
  });
  server.on('request', provider.callback());

  const api = createServer(listsFor(provider));
  const apiUrl = await listen(api);
  return {
    url,
    apiUrl,
    clientId,
    clientSecret,
    tokenRequests,
    stop: async () => {
      for (const each of [server, api]) {
        each.closeAllConnections();
        await new Promise((resolve) => each.close(resolve));
      }
    },
  };
}

export const EMPLOYEES = 3;

function listsFor(provider: Provider): RequestListener {
  return async (request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://api');
    const companyId = /\/companies\/([^/]+)/.exec(pathname)?.[1];
    const answer = (status: number, body: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    if (companyId === undefined || (await memberOf(provider, request)) !== companyId) return void answer(401, {});
    const count = pathname.endsWith('/employees') ? EMPLOYEES : 1;
    const data = Array.from({ length: count }, (_, n) => ({ uid: `${companyId}-${n}`, id: n, name: `Number ${n}` }));
    const isList = !pathname.endsWith(companyId);
    answer(200, isList ? { totalRecords: count, totalDisplayRecords: count, data } : { id: companyId, name: 'Havgløtt AS' });
  };
}

async function memberOf(provider: Provider, { headers }: IncomingMessage): Promise<string | undefined> {
  return (await provider.AccessToken.find(headers.authorization?.replace(/^Bearer /, '') ?? ''))?.accountId;
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
