import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Caller } from '../../api/plumbing/caller.js';
import { NotDone, type PageContent } from '../parts/layout.js';
import { useAddress } from '../parts/view.js';
import { fieldsOf, refuseOtherSites, requireOwnForm } from './form-checks.js';
import { OidcLink } from './oidc-pages.js';
import type { OidcSettings } from './oidc-settings.js';
import { safeRedirectPath } from './safe-redirect-path.js';
import { clearSessionKey, sessionKeyOf, setSessionKey } from './session-cookie.js';
import type { Session, Sessions } from './sessions.js';

export interface SignInDependencies {
  readonly sessions: Sessions;
  readonly publicUrl: URL;
  readonly base: string;
  /** Undefined if people sign in only with tokens. */
  readonly oidc?: OidcSettings | undefined;
  /** The owner of the token. Undefined for a wrong token, which is recorded for this address. */
  readonly authenticate: (token: string, address: string) => Promise<Caller | undefined>;
  readonly show: (reply: FastifyReply, content: PageContent, session?: Session) => FastifyReply;
}

const HIDDEN = { schema: { hide: true } };

/** The pages that begin a session with a token, and end it. */
export function signInRoutes(pages: FastifyInstance, deps: SignInDependencies): void {
  const { sessions, publicUrl, base, authenticate, show } = deps;
  const isSecure = publicUrl.protocol === 'https:';
  const issuer = deps.oidc?.issuer.host;

  pages.get('/login', HIDDEN, async (request, reply) => {
    const query = request.query as { next?: unknown; left?: unknown };
    const next = safeRedirectPath(query.next);
    const key = sessionKeyOf(request);
    if (key && (await sessions.find(key))) return reply.redirect(base + next, 303);
    return show(reply, signInPage({ next, issuer, hasLeft: query.left !== undefined }));
  });

  pages.post('/login', HIDDEN, async (request, reply) => {
    refuseOtherSites(request, publicUrl);
    const fields = fieldsOf(request);
    const next = safeRedirectPath(fields.get('next'));
    const token = (fields.get('token') ?? '').trim();
    const caller = token === '' ? undefined : await authenticate(token, request.ip);
    if (!caller) return show(reply, signInPage({ next, issuer, isWrong: true }));
    // A sign-in ends the previous session of the browser.
    const before = sessionKeyOf(request);
    if (before) await sessions.end(before);
    setSessionKey(reply, await sessions.begin(caller), isSecure);
    return reply.redirect(base + next, 303);
  });

  pages.get('/logout', HIDDEN, async (request, reply) => {
    const key = sessionKeyOf(request);
    const session = key && (await sessions.find(key));
    // Another site may lead a browser here, and must not end its session.
    if (session && ![undefined, 'none', 'same-origin'].includes(request.headers['sec-fetch-site']))
      return show(reply, SIGN_OUT_PAGE, session);
    return end(key || undefined, session || undefined, reply);
  });

  pages.post('/logout', HIDDEN, async (request, reply) => {
    refuseOtherSites(request, publicUrl);
    const key = sessionKeyOf(request);
    const session = key && (await sessions.find(key));
    if (session) requireOwnForm(request, session.csrf);
    return end(key, session || undefined, reply);
  });

  async function end(key: string | undefined, session: Session | undefined, reply: FastifyReply): Promise<FastifyReply> {
    if (key) await sessions.end(key);
    clearSessionKey(reply, isSecure);
    return reply.redirect(`${base}/login${session?.isPerson ? '?left' : ''}`, 303);
  }
}

interface SignInProps {
  readonly next: string;
  readonly issuer: string | undefined;
  readonly isWrong?: boolean;
  /** Whether a person who signed in at the issuer has just signed out. */
  readonly hasLeft?: boolean;
}

function signInPage(props: SignInProps): PageContent {
  return { title: 'Sign in', status: props.isWrong ? 401 : 200, body: <SignInForm {...props} /> };
}

function SignInForm({ next, issuer, isWrong = false, hasLeft = false }: SignInProps) {
  const address = useAddress();
  const undone = new URLSearchParams(next.split('?')[1]).get('undone');
  return (
    <div class="sign-in card">
      <h1>Sign in to Muster</h1>
      {undone !== null && <NotDone name={undone} />}
      {isWrong && (
        <p class="notice bad" role="alert">
          This token is unknown or has expired. You are not signed in.
        </p>
      )}
      {issuer && hasLeft && (
        <p class="notice good" role="status">
          You are signed out of Muster. Other people who use this browser can sign in as you until you{' '}
          <a href={address('/login/oidc/sign-out')}>sign out of {issuer}</a>, too.
        </p>
      )}
      {issuer && (
        <p>
          <OidcLink host={issuer} next={next} />
        </p>
      )}
      <form method="post" action={address('/login')}>
        <label for="token">Access token</label>
        <input
          id="token"
          name="token"
          type="password"
          autocomplete="current-password"
          required
          autofocus
          spellcheck={false}
          aria-describedby="token-hint"
          aria-invalid={isWrong ? 'true' : undefined}
        />
        <p class="hint" id="token-hint">
          A token that was made for you, or the admin token: <code>MUSTER_ADMIN_TOKEN</code>, or the file <code>admin-token</code>{' '}
          in <code>MUSTER_HOME</code>.
        </p>
        <input type="hidden" name="next" value={next} />
        <button class="main">Sign in</button>
      </form>
    </div>
  );
}

const SIGN_OUT_PAGE: PageContent = {
  title: 'Sign out',
  body: (
    <div class="card">
      <h1>Sign out?</h1>
      <p>Another site led here. You are still signed in; the button at the top signs you out.</p>
    </div>
  ),
};
