//! The border: `wasi:filesystem` in terms of the guard. Every method is here and none decides anything; each fetches its
//! handles, calls one operation, and turns the outcome into what the guest may see.

use std::os::fd::AsFd;
use std::sync::Arc;

use wasmtime::component::Resource;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode as StockErrorCode;
use wasmtime_wasi::p2::bindings::sync::filesystem::types::{
    self, Advice, Descriptor, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry,
    DirectoryEntryStream, Filesize, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use super::error::{Code, Fail, FsOutcome};
use super::handle::{self, DirHandle, FileHandle, Handle, Place};
use super::listing::EntryStream;
use super::open::Request;
use super::stat::{to_hash, to_stat, to_times};
use super::streams::{FileInput, FileOutput, Target};
use super::sys::{self, Meta};
use super::{FsCtxView, file};

impl FsCtxView<'_> {
    fn dir(&self, descriptor: &Resource<Descriptor>) -> FsOutcome<DirHandle> {
        Ok(handle::get(self.table, descriptor)?.dir()?.clone())
    }

    fn file(&self, descriptor: &Resource<Descriptor>) -> FsOutcome<&FileHandle> {
        Ok(handle::get(self.table, descriptor)?.file()?)
    }

    /// The metadata of an open object, if the guest may have it.
    fn meta(&self, descriptor: &Resource<Descriptor>) -> FsOutcome<Meta> {
        match handle::get(self.table, descriptor)? {
            Handle::File(file) if file.may_stat => Ok(Meta::of(&*file.fd)?),
            Handle::File(_) => Err(Code::NotPermitted.into()),
            Handle::Dir(dir) => self.ctx.meta_at(dir, ".", false),
        }
    }

    fn push_output(
        &mut self,
        descriptor: &Resource<Descriptor>,
        target: Target,
    ) -> FsOutcome<Resource<DynOutputStream>> {
        let file = Arc::clone(self.file(descriptor)?.writable()?);
        let stream: DynOutputStream = Box::new(FileOutput {
            file,
            target,
            failed: false,
        });
        self.table.push(stream).map_err(|_| Fail::Code(Code::Quota))
    }

    fn sync_handle(&self, descriptor: &Resource<Descriptor>, whole: bool) -> FsOutcome<()> {
        match handle::get(self.table, descriptor)? {
            // Nothing can have been written through it.
            Handle::File(file) if file.writable().is_err() => Ok(()),
            Handle::File(file) if whole => Ok(rustix::fs::fsync(&*file.fd)?),
            Handle::File(file) => Ok(sys::sync_data(&*file.fd)?),
            Handle::Dir(dir) => {
                let opened = sys::open_directory(dir.fd(&self.ctx.policy), ".")?;
                Ok(rustix::fs::fsync(opened)?)
            }
        }
    }
}

impl preopens::Host for FsCtxView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let policy = Arc::clone(&self.ctx.policy);
        let mut directories = Vec::new();
        for (root, granted) in policy.roots() {
            let handle = Handle::Dir(DirHandle {
                place: Place::Root,
                root,
            });
            let pushed = handle::push(self.table, handle).map_err(|fail| match fail {
                Fail::Trap(error) => error,
                Fail::Code(code) => code.into(),
            })?;
            directories.push((pushed, granted.path.clone()));
        }
        Ok(directories)
    }
}

impl types::Host for FsCtxView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<types::ErrorCode> {
        Ok(error.downcast()?.into())
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<types::ErrorCode>> {
        let error = self.table.get(&error)?;
        Ok(error
            .downcast_ref::<std::io::Error>()
            .map(|error| StockErrorCode::from(error).into()))
    }
}

impl types::HostDescriptor for FsCtxView<'_> {
    fn read_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        let file = Arc::clone(self.file(&fd)?.readable().map_err(Fail::from)?);
        let stream: DynInputStream = Box::new(FileInput {
            file,
            position: offset,
        });
        Ok(self.table.push(stream).map_err(|_| Code::Quota)?)
    }

    fn write_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        Ok(self.push_output(&fd, Target::At(offset))?)
    }

    fn append_via_stream(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        Ok(self.push_output(&fd, Target::End)?)
    }

    fn advise(
        &mut self,
        fd: Resource<Descriptor>,
        offset: Filesize,
        len: Filesize,
        advice: Advice,
    ) -> FsResult<()> {
        let file = self.file(&fd)?;
        Ok(sys::advise(file.fd.as_fd(), offset, len, advice).map_err(Fail::from)?)
    }

    fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        Ok(self.sync_handle(&fd, false)?)
    }

    fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        Ok(match handle::get(self.table, &fd)? {
            Handle::File(file) => file.flags,
            Handle::Dir(dir) => {
                let rights = self.ctx.policy.rights(dir.root);
                let mutable = rights.write || rights.create || rights.delete;
                let mutate = if mutable {
                    DescriptorFlags::MUTATE_DIRECTORY
                } else {
                    DescriptorFlags::empty()
                };
                DescriptorFlags::READ | mutate
            }
        })
    }

    fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        Ok(match handle::get(self.table, &fd)? {
            Handle::File(_) => DescriptorType::RegularFile,
            Handle::Dir(_) => DescriptorType::Directory,
        })
    }

    fn set_size(&mut self, fd: Resource<Descriptor>, size: Filesize) -> FsResult<()> {
        let file = self.file(&fd)?.writable().map_err(Fail::from)?;
        Ok(rustix::fs::ftruncate(&**file, size).map_err(Fail::from)?)
    }

    fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        let times = to_times(accessed, modified)?;
        match handle::get(self.table, &fd)? {
            Handle::File(file) if !file.may_touch => Err(Code::NotPermitted.into()),
            Handle::File(file) => Ok(rustix::fs::futimens(&*file.fd, &times).map_err(Fail::from)?),
            Handle::Dir(dir) => Ok(self.ctx.set_times_at(dir, ".", false, &times)?),
        }
    }

    fn read(
        &mut self,
        fd: Resource<Descriptor>,
        len: Filesize,
        offset: Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        let file = self.file(&fd)?.readable().map_err(Fail::from)?;
        let bytes = file::read(&**file, len, offset).map_err(Fail::from)?;
        let at_end = bytes.is_empty() && len > 0;
        Ok((bytes, at_end))
    }

    fn write(
        &mut self,
        fd: Resource<Descriptor>,
        bytes: Vec<u8>,
        offset: Filesize,
    ) -> FsResult<Filesize> {
        let file = self.file(&fd)?.writable().map_err(Fail::from)?;
        file::write_all(file.as_fd(), &bytes, offset).map_err(Fail::from)?;
        Ok(bytes.len() as u64)
    }

    fn read_directory(
        &mut self,
        fd: Resource<Descriptor>,
    ) -> FsResult<Resource<DirectoryEntryStream>> {
        let stream = self.ctx.list(&self.dir(&fd)?)?;
        let pushed = self.table.push(stream).map_err(|_| Code::Quota)?;
        Ok(Resource::new_own(pushed.rep()))
    }

    fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        Ok(self.sync_handle(&fd, true)?)
    }

    fn create_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        Ok(self.ctx.make_directory(&self.dir(&fd)?, &path)?)
    }

    fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        Ok(to_stat(&self.meta(&fd)?))
    }

    fn stat_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        Ok(to_stat(&self.ctx.meta_at(
            &self.dir(&fd)?,
            &path,
            follows(flags),
        )?))
    }

    fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        let times = to_times(accessed, modified)?;
        Ok(self
            .ctx
            .set_times_at(&self.dir(&fd)?, &path, follows(flags), &times)?)
    }

    fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_flags: PathFlags,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        let (from, to) = (self.dir(&fd)?, self.dir(&new_fd)?);
        Ok(self
            .ctx
            .link(&from, follows(old_flags), &old_path, &to, &new_path)?)
    }

    fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        oflags: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let dir = self.dir(&fd)?;
        let request = Request::new(follows(path_flags), oflags, flags)?;
        let handle = self.ctx.open(&dir, &path, request)?;
        Ok(handle::push(self.table, handle)?)
    }

    fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        Ok(self.ctx.read_link(&self.dir(&fd)?, &path)?)
    }

    fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        Ok(self.ctx.remove_directory(&self.dir(&fd)?, &path)?)
    }

    fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        old_path: String,
        new_fd: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        let (from, to) = (self.dir(&fd)?, self.dir(&new_fd)?);
        Ok(self.ctx.rename(&from, &old_path, &to, &new_path)?)
    }

    fn symlink_at(
        &mut self,
        fd: Resource<Descriptor>,
        target: String,
        path: String,
    ) -> FsResult<()> {
        Ok(self.ctx.symlink(&self.dir(&fd)?, &target, &path)?)
    }

    fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        Ok(self.ctx.unlink(&self.dir(&fd)?, &path)?)
    }

    fn is_same_object(
        &mut self,
        a: Resource<Descriptor>,
        b: Resource<Descriptor>,
    ) -> wasmtime::Result<bool> {
        let id = |descriptor| -> wasmtime::Result<_> {
            let found = match handle::get(self.table, descriptor) {
                Ok(Handle::File(file)) => Meta::of(&*file.fd),
                Ok(Handle::Dir(dir)) => Meta::of(dir.fd(&self.ctx.policy)),
                Err(Fail::Trap(error)) => return Err(error),
                Err(Fail::Code(code)) => return Err(code.into()),
            };
            Ok(found.ok().map(|meta| meta.id))
        };
        let (a, b) = (id(&a)?, id(&b)?);
        Ok(a.is_some() && a == b)
    }

    fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        Ok(to_hash(&self.ctx.policy, &self.meta(&fd)?))
    }

    fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let meta = self.ctx.meta_at(&self.dir(&fd)?, &path, follows(flags))?;
        Ok(to_hash(&self.ctx.policy, &meta))
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        handle::delete(self.table, &fd)
    }
}

impl types::HostDirectoryEntryStream for FsCtxView<'_> {
    fn read_directory_entry(
        &mut self,
        stream: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let stream = self
            .table
            .get_mut(&Resource::<EntryStream>::new_borrow(stream.rep()))?;
        Ok(stream.next()?)
    }

    fn drop(&mut self, stream: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.table
            .delete(Resource::<EntryStream>::new_own(stream.rep()))?;
        Ok(())
    }
}

fn follows(flags: PathFlags) -> bool {
    flags.contains(PathFlags::SYMLINK_FOLLOW)
}
