import { ActionForm, AsCommands, useCommands } from '../parts/action-form.js';
import type { PageContent } from '../parts/layout.js';
import { ENVIRONMENT_CHOICES } from '../parts/list-page.js';
import { When } from '../parts/shown-values.js';
import { useAddress } from '../parts/view.js';
import { Copyable } from './company-page.js';

/** The page that makes a link for a company that is not connected yet. */
export async function connectCompanyPage(): Promise<PageContent> {
  return { title: 'Connect a company', body: <ConnectCompany /> };
}

function ConnectCompany() {
  return (
    <div class="card narrow">
      <h1>Connect a company</h1>
      <p>
        Make a link and send it to an administrator of the company. They choose the company and allow access; the first sync
        starts at once.
      </p>
      <ActionForm name="connect_link.create" fields={{}} back="/companies">
        <label>
          <span>Environment</span>
          <select name="environment">
            {ENVIRONMENT_CHOICES.map(([value, text]) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Company id, if it must be this one</span>
          <input type="text" name="company_id" placeholder="5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10" maxLength={40} />
        </label>
      </ActionForm>
      <AsCommands commands={useCommands(['connect_link.create'], { environment: 'production' })} />
    </div>
  );
}

/** The new link, which is shown only once. */
export function connectLinkPage(
  { url, expires_at }: { readonly url: string; readonly expires_at: string },
  back: string,
): PageContent {
  return { title: 'The link', body: <ConnectLink url={url} expiresAt={expires_at} back={back} /> };
}

function ConnectLink({ url, expiresAt, back }: { readonly url: string; readonly expiresAt: string; readonly back: string }) {
  const address = useAddress();
  return (
    <div class="card narrow">
      <h1>The link is made</h1>
      <p>
        Send it to an administrator of the company. It works once, ends <When at={expiresAt} />, and is shown only once.
      </p>
      <Copyable label="Link" value={url} />
      <p>
        <a href={url}>Open it here</a> · <a href={address(back)}>Back</a>
      </p>
    </div>
  );
}
