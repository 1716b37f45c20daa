import type { ProviderSettings } from '../core/provider-settings.js';

/** GET {auth_url}/auth/authorize, the consent screen; `companyId`, where known, is chosen there beforehand. */
export function authorizationUrl(provider: ProviderSettings, state: string, companyId: string | null): URL {
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
