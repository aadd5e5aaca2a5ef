# The service, the scheduler and the workers run from one image; compose.yaml starts them.
FROM python:3.13-slim AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE CHANGELOG.md ./
COPY src ./src
RUN python -m venv /opt/afterword \
 && /opt/afterword/bin/pip install --no-cache-dir ".[server,workers]"

FROM python:3.13-slim
# Nobody but this user owns the data, and the program itself belongs to root.
RUN useradd --system --uid 10001 --home-dir /data --create-home afterword
COPY --from=build /opt/afterword /opt/afterword
ENV PATH=/opt/afterword/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    XDG_CACHE_HOME=/tmp \
    AFTERWORD_STORE__URL=sqlite:////data/afterword.db \
    AFTERWORD_SERVER__HOST=0.0.0.0
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8321
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8321/readyz', timeout=2)"]
ENTRYPOINT ["afterword"]
CMD ["serve"]
