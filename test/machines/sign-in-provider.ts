import { generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Context, Provider } from 'oidc-provider';

type Claims = Record<string, unknown>;

/** Staff of the tests, by what they sign in with, and the groups that the provider says they are in. */
export const STAFF = {
  anna: ['staff', 'muster-admins'],
  olav: ['muster-operators', 'muster-viewers'],
  vera: ['muster-viewers'],
  nils: ['canteen'],
  admin: ['muster-viewers'],
} as const satisfies Readonly<Record<string, readonly string[]>>;

export interface SignInProvider {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** How often codes were brought to the token endpoint. */
  exchanges: number;
  /** Everything secret that was given out: codes, ID tokens and access tokens. */
  readonly secrets: Set<string>;
  /** Changes what the next ID tokens say, signed by the right key unless `signature` says otherwise; undefined = nothing. */
  lie: ((claims: Claims) => Claims) | undefined;
  signature: 'right' | 'of another key' | 'none';
  /** Changes what the user info says. */
  lieOfUser: ((claims: Claims) => Claims) | undefined;
  stop(): Promise<void>;
}

/** panva's oidc-provider, certified for OpenID Connect: signs staff in by its own pages, and gives their groups in the user info, not in the ID token. */
export async function startSignInProvider(redirectUri: string): Promise<SignInProvider> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const [right, other] = [newKey(), newKey()];
  const [clientId, clientSecret] = ['muster-control-room', `secret-${randomBytes(16).toString('hex')}`];
  const provider = new Provider(url, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code'],
        response_types: ['code'],
      },
    ],
    jwks: { keys: [{ ...right.export({ format: 'jwk' }), kid: 'k1', use: 'sig', alg: 'RS256' }] },
    claims: { openid: ['sub'], profile: ['preferred_username', 'groups'], email: ['email', 'email_verified'] },
    pkce: { required: () => true },
    findAccount: (_context: unknown, accountId: string) => ({
      accountId,
      claims: () => ({ sub: accountId, preferred_username: accountId, groups: STAFF[accountId as keyof typeof STAFF] }),
    }),
    features: { devInteractions: { enabled: true } },
    cookies: { keys: ['a-key-of-tests'] },
    ttl: { AccessToken: 600, AuthorizationCode: 300, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
  });

  const self: SignInProvider = {
    url,
    clientId,
    clientSecret,
    exchanges: 0,
    secrets: new Set([clientSecret]),
    lie: undefined,
    signature: 'right',
    lieOfUser: undefined,
    stop: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  provider.use(async (context: Context, next) => {
    await next();
    if (context.path === '/token') {
      self.exchanges += 1;
      if (context.oidc.params?.code) self.secrets.add(context.oidc.params.code);
      if (context.status !== 200) return;
      const body = context.body as { id_token: string; access_token: string };
      const [header, payload] = body.id_token.split('.', 2).map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()));
      if (self.lie || self.signature !== 'right')
        body.id_token = signed(
          header,
          self.lie?.(payload) ?? payload,
          { right, 'of another key': other, none: undefined }[self.signature],
        );
      self.secrets.add(body.id_token).add(body.access_token);
    }
    if (context.path === '/me' && self.lieOfUser) context.body = self.lieOfUser(context.body as Claims);
  });
  server.on('request', provider.callback());
  return self;
}

type Key = ReturnType<typeof newKey>;

function newKey() {
  return generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey;
}

function signed(header: Claims, payload: Claims, key: Key | undefined): string {
  const text = [key ? header : { ...header, alg: 'none' }, payload]
    .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
    .join('.');
  return `${text}.${key ? sign('sha256', Buffer.from(text), key).toString('base64url') : ''}`;
}
