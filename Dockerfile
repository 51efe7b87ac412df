# docker build -t registry.example/wayout:0.1.0 --build-arg BUILD="$(git rev-parse --short HEAD)" .
# docker run --network host --cap-drop ALL --cap-add NET_ADMIN --cap-add NET_RAW \
#   -v /etc/wayout:/etc/wayout:ro registry.example/wayout:0.1.0
ARG PYTHON=3.11-slim-bookworm

FROM python:${PYTHON} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY agent agent
COPY config config
COPY egress egress
COPY gossip gossip
# A virtual environment is one folder to copy; bytecode is compiled here, for the root is read-only.
RUN python -m venv /opt/wayout \
 && /opt/wayout/bin/pip install --no-cache-dir --disable-pip-version-check . \
 && /opt/wayout/bin/pip uninstall --yes pip setuptools \
 && /opt/wayout/bin/python -m compileall -q /opt/wayout/lib

FROM python:${PYTHON}
ARG BUILD=image
ENV PATH=/opt/wayout/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    WAYOUT_BUILD=${BUILD}
COPY --from=build /opt/wayout /opt/wayout
# No USER line: capabilities that a container runtime adds reach root alone (they are not made
# ambient), and the daemon needs two of them, NET_ADMIN and NET_RAW. Drop all others, as above.
STOPSIGNAL SIGTERM
EXPOSE 7955/udp 7955/tcp
ENTRYPOINT ["wayout"]
CMD ["run"]
