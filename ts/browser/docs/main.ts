/** Shows the server's own OpenAPI document. */
import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js';
import { nameForEverybody } from './names.ts';

const isDark = matchMedia('(prefers-color-scheme: dark)');
const followScheme = () => document.documentElement.classList.toggle('dark-mode', isDark.matches);
isDark.addEventListener('change', followScheme);
followScheme();

const api = document.querySelector('#api');
if (api !== null) nameForEverybody(api);
SwaggerUI({
  domNode: api,
  url: '/openapi.json',
  // With a validator, Swagger UI would send the document's address to another operator's server to be checked there.
  validatorUrl: null,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
});
