import { ENVIRONMENTS } from '../../core/company.js';
import { ActionForm, AsCommands, useCommands } from '../parts/action-form.js';
import { Copyable } from '../parts/copyable.js';
import { Field, Select } from '../parts/fields.js';
import type { PageContent } from '../parts/layout.js';
import { Link, When } from '../parts/shown-values.js';

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
        <Select label="Environment" name="environment" options={ENVIRONMENTS.map((name) => [name, name])} />
        <Field label="Company id, if it must be this one">
          <input type="text" name="company_id" placeholder="5f0c1d3a-8a52-4c0e-9d1b-2f6f0f3b7a10" maxLength={40} />
        </Field>
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
  const body = (
    <div class="card narrow">
      <h1>The link is made</h1>
      <p>
        Send it to an administrator of the company. It works once, ends <When at={expires_at} />, and is shown only once.
      </p>
      <Copyable label="Link" value={url} />
      <p>
        <a href={url}>Open it here</a> · <Link to={back}>Back</Link>
      </p>
    </div>
  );
  return { title: 'The link', body };
}
