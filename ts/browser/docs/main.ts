/** Shows the server's own OpenAPI document. */
import SwaggerUI from 'swagger-ui-dist/swagger-ui-es-bundle.js';

SwaggerUI({
  domNode: document.querySelector('#api'),
  url: '/openapi.json',
  // Else the document's address would go to a server of others, to be checked there.
  validatorUrl: null,
  docExpansion: 'list',
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
});
